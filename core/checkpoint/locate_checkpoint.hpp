#pragma once
// Finds the checkpoint that a path refers to, and the metadata files of a directory.

#include <optional>
#include <string>
#include <vector>

#include "core/format/metadata.hpp"
#include "core/format/step_names.hpp"
#include "reprise/store.hpp"
#include "reprise/types.hpp"

namespace reprise {

/// Says where locate() found a checkpoint.
struct Location {
  std::string directory;               ///< directory of the files, within the store
  std::optional<Step> step;            ///< from the name of the directory or the tracker
  std::optional<std::string> tracker;  ///< path of the tracker that was followed
  StoredForm form = StoredForm::kTorchDist;
  std::string file = {};  ///< the one file or index in the directory that was named

  bool torch_dist() const { return form == StoredForm::kTorchDist; }
  /// Returns the path by which locate() finds this again.
  std::string path() const;
};

/// The formats that a caller can do something with.
enum class Formats : std::uint8_t { kTorchDist, kAll };

/// Finds the checkpoint that `path` refers to: a directory with `.metadata` or `__<rank>.metadata`,
/// or a root whose latest_checkpointed_iteration.txt names such a directory. If the directory is
/// missing and a crash left `<directory>.replaced`, returns that copy. If there is no checkpoint,
/// throws NOT_FOUND, INCOMPLETE_SELECTED (payload without metadata), TRACKER_DANGLING (the tracker
/// names a missing directory) or UNSUPPORTED (another program's checkpoint, named in the message).
/// If `names` are such that have no tracker, a root is a directory with iterations, and the newest
/// committed one is returned. With Formats::kAll, `path` may also be a file of safetensors or of
/// torch.save, an index of such files, or a directory that has some and neither `.metadata`,
/// tracker nor payload.
Location locate(Store& store, const std::string& path, const StepNames& names = {},
                Formats formats = Formats::kTorchDist);
/// True if no checkpoint was ever committed at `path`: it does not exist, or contains neither a
/// tracker nor anything that was a checkpoint, of whatever program. Leftovers of an interrupted
/// save are ignored.
bool nothing_saved(Store& store, const std::string& path);

/// True if the directory itself has `.metadata` or `__<rank>.metadata`. False if it is missing.
bool holds_metadata(Store& store, const std::string& directory);
/// Returns the names of the metadata files in `directory`. Empty if there are none or if the
/// directory does not exist.
std::vector<std::string> metadata_names(Store& store, const std::string& directory);

}  // namespace reprise
