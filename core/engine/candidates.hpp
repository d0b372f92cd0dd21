#pragma once
// Which checkpoint a load takes, where it may fall back to an older one.
//
//   tracker -> iter_6 -> iter_4 -> iter_2      newest first; none that the tracker does not reach
//                damaged  whole
//                         ^ taken, by all ranks together; the log says why not iter_6
//
// What is damaged leads to the next. What is whole and does not fit the job (another run's, another
// layout's, other keys) is refused: an older one would not fit better, and would hide it.

#include <optional>
#include <string>
#include <vector>

#include "core/engine/checkpoint.hpp"
#include "reprise/error.hpp"
#include "reprise/load.hpp"

namespace reprise {

/// How far a load came.
enum class LoadStage : std::uint8_t {
  kLocate,   ///< finding a checkpoint
  kOpen,     ///< its metadata, and whether its files are there
  kKeys,     ///< what is wanted against what is stored
  kContent,  ///< its bytes
};

/// Whether an error of that stage says that the checkpoint is damaged.
bool is_damage(Code code, LoadStage stage);

struct Candidates {
  std::vector<Location> locations;       ///< the one to try first stands first
  std::vector<std::string> passed_over;  ///< why the tracker's is not among them, if it is not
  /// For the operator: a committed iteration that is newer than the one that the tracker names. A
  /// crash may have left it, or a load that fell back; or the tracker is not what was written.
  std::vector<std::string> notes = {};
};

/// What `path` means, and where it is a root and falling back is allowed, all committed iterations
/// below the one that the tracker names; all there are if the tracker is unreadable or gone. Throws
/// as locate() does if there is none.
Candidates candidates(Store& store, const std::string& path, Fallback fallback);

/// Looks at every `ranks`-th payload file, from `rank` on: that it is there, and that no item of it
/// goes beyond its end. NOT_FOUND or TORN_FILE otherwise.
void require_files(Checkpoint& checkpoint, GroupRank rank, std::int32_t ranks);

}  // namespace reprise
