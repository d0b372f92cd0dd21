#pragma once
// Loads a checkpoint into a job's state, whatever sharding it was saved with. Every call is
// collective: all ranks of the job make the same calls in the same order, and an Error is the same
// on all ranks.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/value.hpp"

namespace reprise REPRISE_API {

class Job;
class State;

/// How a load reacts if the requested keys differ from the stored keys. These are the strict modes
/// of Megatron's dist_checkpointing (StrictHandling), and they have the same names.
enum class Strictness : std::uint8_t {
  kAssumeOkUnexpected,  ///< "assume_ok_unexpected": keys are not compared first; reading an absent
                        ///< tensor fails
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

/// Says whether a load compares the data it reads with the stored CRC-32.
enum class LoadChecksums : std::uint8_t {
  kIgnored,
  kVerified,  ///< reads a record in full if any of its bytes are needed
};

/// Says which checkpoint to load if the tracker refers to a damaged one.
enum class Fallback : std::uint8_t {
  kNone,
  kNewestWhole,  ///< the newest undamaged one; checksums are then always verified
};

/// Says which ranks read from storage when several ranks need the same data.
enum class Reads : std::uint8_t {
  kByEach,      ///< each rank reads all it needs
  kOncePerJob,  ///< each rank reads a share and sends it to the others
};

struct LoadOptions {
  /// Path relative to the job's root. Refers to a checkpoint, or to a directory with iterations, of
  /// which the newest is loaded.
  std::string directory;
  std::string step_names = "iter_%07d";  ///< see SaveOptions
  Strictness strictness = Strictness::kRaiseAll;
  /// Keys that are allowed to be missing in the request or in the checkpoint.
  std::vector<std::string> excused = {};
  LoadChecksums checksums = LoadChecksums::kIgnored;
  Fallback fallback = Fallback::kNone;
  Reads reads = Reads::kByEach;
  /// Size of the read buffer; without a value 64 MiB for a device, and 16 MiB without one. What is
  /// read once for all ranks is exchanged in rounds of at most the smallest buffer of any rank.
  std::optional<std::uint64_t> staging_bytes = {};
  /// Stream of the job's device on which the state is used: a cudaStream_t. Null: the stream of the
  /// device. Not the same on all ranks.
  void* stream = nullptr;
};

struct LoadResult {
  std::string directory;  ///< directory of the loaded checkpoint, relative to the job's root
  std::optional<std::int64_t> step;  ///< iteration of the checkpoint, if it has one
  std::uint64_t tensors = 0;         ///< tensors of this rank that were filled
  std::uint64_t objects = 0;         ///< objects of this rank that were filled
  std::uint64_t elements = 0;        ///< elements of this rank that were filled
  std::uint64_t bytes_read = 0;  ///< element bytes delivered to this rank, whichever rank read them
  /// Number of bytes that this rank read from storage on behalf of all ranks that need them
  /// (Reads::kOncePerJob).
  std::uint64_t bytes_for_all = 0;
  std::uint64_t bytes_needed = 0;  ///< size of the elements that this rank asked for
  std::uint64_t peak_staging =
      0;  ///< size of the read buffer, plus the peak size of exchanged data
  /// Upper limit, known in advance, on the memory that this rank uses for reading, apart from the
  /// job's own memory. Covers staging, the largest object, and one round of the exchange including
  /// this rank's share. Excludes the metadata, which all ranks hold, and memory that the fabric
  /// uses within a call.
  std::uint64_t bound_staging = 0;
  /// Limit that replaces bound_staging on a rank that needs no tensors, or only tensors of a single
  /// element: the size of its largest object plus a constant. If records are read once for all
  /// ranks, this rank's part of the exchange is added.
  std::uint64_t bound_empty = 0;
  std::uint64_t metadata_bytes = 0;    ///< size of the broadcast metadata; 0 if none was sent
  std::uint64_t records_verified = 0;  ///< number of records whose checksums this rank verified
  /// Keys that were requested but are not stored, if the strict mode returns such keys.
  std::vector<std::string> not_stored;
  /// Keys that are stored but were not requested, if the strict mode returns such keys.
  std::vector<std::string> not_requested;
  std::vector<std::string> excused;  ///< keys from LoadOptions::excused that were missing
  /// Checkpoints that were skipped, each with its damage; the same on all ranks.
  std::vector<std::string> fell_back_from;
  /// Iterations of the skipped checkpoints. A save with `keep` does not count them, until it has
  /// replaced them.
  std::vector<std::int64_t> damaged;
  std::vector<std::string> log;  ///< messages for the operator
};

/// Fills the state's tensors, objects and common state. The state decides keys, shapes and dtypes.
/// If the load is refused because of names or metadata, the tensors stay unchanged. If content is
/// damaged or unreadable, the tensors are poisoned (filled with 0xBD), and the job must not
/// continue with them.
///
/// Throws NOT_FOUND, INCOMPLETE_SELECTED or TRACKER_DANGLING if there is no checkpoint, NOT_STORED
/// or NOT_REQUESTED depending on the strict mode, SHAPE_DRIFT, DTYPE_DRIFT, COVERAGE_GAP, CHECKSUM,
/// TORN_FILE and others, with rank, key, file and offset if known.
LoadResult load(Job& job, State& state, const LoadOptions& options);

/// Loads as load() does, but returns nothing and leaves the state unchanged if no checkpoint was
/// ever committed in the directory. Meant for a job that may be starting for the first time. Also
/// returns nothing if the job's first save failed. A save that was killed between its last two
/// steps leaves a complete checkpoint but no tracker; Fallback::kNewestWhole finds that checkpoint.
/// Throws NOT_FOUND, with the rank that sees nothing, if other ranks see a checkpoint.
std::optional<LoadResult> load_if_any(Job& job, State& state, const LoadOptions& options);

/// Reads only the common state, from which a job can decide what to load. Returns nothing if the
/// checkpoint has no common state. `step_names` is as in LoadOptions.
std::optional<Value> read_common(Job& job, const std::string& directory,
                                 const std::string& step_names = "iter_%07d");

}  // namespace REPRISE_API
