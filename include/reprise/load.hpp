#pragma once
// Loads a checkpoint into a job's state, whatever the sharding that it was saved with. Every call
// is collective: all ranks of the job make the same calls in the same order, and an Error is the
// same on all of them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/value.hpp"

namespace reprise REPRISE_API {

class Job;
class State;

/// What happens when the requested keys and the stored keys are not the same: the strict modes of
/// Megatron's dist_checkpointing (StrictHandling), by their names there.
enum class Strictness {
  kAssumeOkUnexpected,  ///< "assume_ok_unexpected": no check here; an absent tensor fails when it
                        ///< is read
  kLogUnexpected,
  kLogAll,
  kRaiseUnexpected,
  kRaiseAll,
  kReturnUnexpected,
  kReturnAll,
  kIgnoreAll,
};
std::string_view name_of(Strictness mode);
std::optional<Strictness> strictness_named(std::string_view name);

/// Whether what is read is held against the CRC-32 that is stored for it.
enum class LoadChecksums : std::uint8_t {
  kIgnored,
  kVerified,  ///< records of which bytes are needed are read whole
};

/// Which checkpoint is loaded if the one that the tracker names is damaged.
enum class Fallback : std::uint8_t {
  kNone,
  kNewestWhole,  ///< to the newest one that is whole; checksums are verified
};

/// Who reads from storage what several ranks need.
enum class Reads : std::uint8_t {
  kByEach,      ///< each of them
  kOncePerJob,  ///< each its share, and the fabric spreads it
};

struct LoadOptions {
  /// Within the job's root: a checkpoint, an iteration, or a directory with a tracker.
  std::string directory;
  Strictness strictness = Strictness::kRaiseAll;
  /// Keys that may be absent on one side.
  std::vector<std::string> excused = {};
  LoadChecksums checksums = LoadChecksums::kIgnored;
  Fallback fallback = Fallback::kNone;
  Reads reads = Reads::kByEach;
  std::uint64_t staging_bytes = std::uint64_t{16} << 20U;  ///< what reads go through
};

struct LoadResult {
  std::string directory;                    ///< of the checkpoint, within the job's root
  std::optional<std::int64_t> step;         ///< of its iteration, if it is one
  std::uint64_t tensors = 0;                ///< of this rank that were filled
  std::uint64_t objects = 0;                ///< likewise
  std::uint64_t elements = 0;               ///< likewise
  std::uint64_t bytes_read = 0;             ///< element bytes, this rank
  std::vector<std::string> not_stored;      ///< requested keys, where the strict mode returns them
  std::vector<std::string> not_requested;   ///< stored keys, likewise
  std::vector<std::string> excused;         ///< those of the options that were absent
  std::vector<std::string> fell_back_from;  ///< checkpoints that were passed over, and why
  std::vector<std::string> log;             ///< for the operator
};

/// Fills the state's tensors, objects and common state; keys, shapes and dtypes are the state's. A
/// refusal that follows from names or metadata leaves the tensors as they were. After damaged or
/// unreadable content they are poisoned (0xBD), and the job may not go on from them.
///
/// Throws NOT_FOUND, INCOMPLETE_SELECTED or TRACKER_DANGLING if there is no checkpoint, NOT_STORED
/// or NOT_REQUESTED by the strict mode, SHAPE_DRIFT, DTYPE_DRIFT, COVERAGE_GAP, CHECKSUM,
/// TORN_FILE and others, with rank, key, file and offset as far as known.
LoadResult load(Job& job, State& state, const LoadOptions& options);

/// Loads as load() does, or returns nothing and leaves the state as it was if no checkpoint was
/// ever committed in the directory: for a job that may be starting. A first save that died leaves
/// it so; killed between its last two steps it leaves a whole checkpoint and no tracker, which
/// Fallback::kNewestWhole finds.
std::optional<LoadResult> load_if_any(Job& job, State& state, const LoadOptions& options);

/// The common state alone, for a job that needs it to know what to load. Nothing where a checkpoint
/// has none.
std::optional<Value> read_common(Job& job, const std::string& directory);

}  // namespace REPRISE_API
