#pragma once
// Chooses the checkpoint to load, if the load may fall back to an older one.
//
//   tracker -> iter_6 -> iter_4 -> iter_2      newest first; starts at the tracker's iteration
//                damaged  whole
//                         ^ loaded by all ranks together; the log says why iter_6 was not
//
// If a candidate is damaged, the next one is tried. If it is undamaged but does not fit the job
// (another run, layout or keys), the load is refused: an older checkpoint would fit no better and
// would hide the mistake.

#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "reprise/error.hpp"
#include "reprise/load.hpp"

namespace reprise {

/// Stage that a load has reached.
enum class LoadStage : std::uint8_t {
  kLocate,   ///< finding a checkpoint
  kOpen,     ///< reading the checkpoint's metadata, checking that its files exist
  kKeys,     ///< comparing wanted keys with stored keys
  kContent,  ///< reading the checkpoint's content
};

/// True if an error with this code in this stage means that the checkpoint is damaged.
bool is_damage(Code code, LoadStage stage);

struct Candidates {
  std::vector<Location> locations;  ///< in the order in which to try them
  /// Reasons why `locations` does not contain the iteration of the tracker; empty if it does.
  std::vector<std::string> passed_over;
  /// Messages for the operator about committed iterations newer than the tracker's. Such iterations
  /// may remain after a crash or after a load that fell back, or somebody may have changed the
  /// tracker.
  std::vector<std::string> notes = {};
};

/// Returns the checkpoint that `path` refers to. If `path` is a root and fallback is allowed, adds
/// all committed iterations older than the tracker's; if the tracker is unreadable or missing, adds
/// all committed iterations. If there is no checkpoint at all, throws the same error as locate().
Candidates candidates(Store& store, const std::string& path, Fallback fallback,
                      const StepNames& names = {});

/// Checks every `ranks`-th payload file, starting with file number `rank`. Throws NOT_FOUND if a
/// file does not exist, and TORN_FILE if an item extends past the end of its file.
void require_files(Checkpoint& checkpoint, GroupRank rank, std::int32_t ranks);

}  // namespace reprise
