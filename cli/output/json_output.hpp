#pragma once
// Makes the output of `--json`: one document with sorted keys and with counts as integers.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/keys/key_filter.hpp"
#include "cli/output/files_report.hpp"
#include "core/checkpoint/checkpoints_below.hpp"
#include "core/diff/diff.hpp"
#include "core/export/export.hpp"
#include "core/reshard/reshard.hpp"
#include "core/summary/tensor_contents.hpp"
#include "core/verify/verify.hpp"

namespace reprise::cli {

/// Returns the output of a verb that fails before it has produced any other output.
std::string error_json(const Error& error);

/// Has what `verify --all` says of a directory besides its checkpoints. Paths are as the user knows
/// them.
struct VerifiedRoot {
  struct Resume {
    std::string program;
    std::string path;  ///< empty if it would resume from nothing
    std::string why;
    std::optional<bool> good;  ///< whether that is whole; empty if it was not looked at
    bool broken = false;       ///< see ResumePoint
  };
  std::string root;
  std::size_t checkpoints = 0;
  std::size_t good = 0;
  std::vector<BesideCheckpoints> beside;
  std::vector<Resume> resume;
};

/// Returns the output of `verify`. `checkpoints` has each path, as given on the command line, with
/// its report. `unread` has each path that could not be read, with the error.
std::string verify_json(const std::vector<std::pair<std::string, VerifyReport>>& checkpoints,
                        const std::vector<std::pair<std::string, Error>>& unread,
                        const std::vector<VerifiedRoot>& roots);

std::string diff_json(const DiffRequest& request, const DiffReport& report);

/// The facts that `export` tells besides its report.
struct ExportTold {
  std::pair<std::string, std::string> paths;                     ///< IN and OUT
  std::vector<std::string> left_out;                             ///< keys of what is not in OUT
  std::vector<std::pair<std::string, std::string>> values = {};  ///< that the rules used
  std::map<std::string, std::string> contradicted = {};          ///< by --set: what IN says
  std::vector<std::string> unsaid = {};  ///< arguments that rules expect and IN does not state
  Findings notes = {};
};
/// Returns the JSON document of `export`.
std::string export_json(const ExportTold& told, const ExportReport& report);
/// Says how the chunks of a checkpoint fit the ranks of a layout: the bytes that torch reads by
/// those that the ranks ask for, in the checkpoint that was read and in the one that was written.
struct LayoutFit {
  std::string layout;
  std::optional<double> before;  ///< nothing if the source was in another form
  double after = 0;
  std::vector<std::string> notes = {};
};
/// Says what became of the state of a distributed optimizer.
struct OptimizerChange {
  std::string from;  ///< form in which it was stored
  std::string to;
  std::uint64_t tensors = 0;
  std::vector<std::string> without_state = {};  ///< weights of which there is none
};
/// The facts that `reshard` tells besides its report.
struct ReshardTold {
  std::string source;
  std::string target;
  std::vector<Release> releases = {};     ///< that OUT was written for
  std::vector<std::string> changes = {};  ///< in form, for these releases
  std::optional<LayoutFit> fit = {};
  std::optional<OptimizerChange> optimizer = {};
};
/// Returns the JSON document of `reshard`.
std::string reshard_json(const ReshardTold& told, const ReshardReport& report);

/// Says what `inspect` reads in addition to the metadata.
struct InspectContent {
  ContentsWanted wanted;  ///< of tensors; SHA-256 also of the stored bytes of objects
  bool values = false;    ///< values of objects and of the common state, as value_json writes them
};

/// Returns the output of `inspect`: the tensors with their chunks, the objects and the files.
/// Leaves out keys that the filter excludes. `contents` has what was read of the tensors that pass
/// it, in the order of the catalog; damage of objects that are hashed is added. If an object or the
/// common state cannot be read, its content is replaced by an "error", which is also added to
/// `unread`.
std::string inspect_json(Checkpoint& checkpoint, const KeyFilter& filter,
                         const InspectContent& content, TensorContents& contents, Findings& unread);

}  // namespace reprise::cli
