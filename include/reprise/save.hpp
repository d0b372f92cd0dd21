#pragma once
// Saves a job's state as a checkpoint in the format of PyTorch's distributed checkpoint and
// Megatron-Core. Every call is collective: all ranks of the job make the same calls in the same
// order, and an Error is the same on all of them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/types.hpp"

namespace reprise REPRISE_API {

class Job;
class State;

/// Checksums that a save writes next to the elements, so that damage can be detected.
enum class Checksums : std::uint8_t {
  kNone,
  kCrc32,           ///< one CRC-32 per record, in the record's archive
  kCrc32AndSha256,  ///< in addition, one SHA-256 per file, in a manifest (integrity.json)
};

/// Says when begin_save returns.
enum class BeginReturns : std::uint8_t {
  kWhenCopied,  ///< the caller may change the state at once
  /// Copies of the state may still run. Call SaveInFlight::wait_for_staging before the state
  /// changes, such as before the optimizer's step; forward and backward passes overlap the copies.
  /// If `staging_bytes` is smaller than what the rank writes, this is the same as kWhenCopied.
  kWhenQueued,
};

/// Says when each rank reads its file again after writing it and compares it with what it wrote.
/// This happens in the background, before the checkpoint is committed. A store that reported a
/// write that it did not do fails the save (IO).
enum class ReadBack : std::uint8_t {
  /// Only if the save will remove an older checkpoint: with `keep`, or when it replaces one.
  kBeforeOlderGoes,
  kAlways,
  /// Never. The new checkpoint is then only as good as the store's word, even if an older one is
  /// removed.
  kNever,
};

struct SaveOptions {
  /// Path relative to the job's root. If `step` is set, the checkpoint is `directory/iter_<step>`,
  /// and the tracker in `directory` refers to it. Otherwise the checkpoint is `directory` itself.
  std::string directory;
  std::optional<std::int64_t> step = {};
  Checksums checksums = Checksums::kCrc32;
  /// Number of iterations to keep in `directory`, including the new one; at least 1. Allowed only
  /// with a step. If empty, all are kept.
  std::optional<std::int32_t> keep = {};
  bool replace = true;  ///< if false, throws USAGE when a checkpoint of that name exists
  /// Upper limit on memory for copies of data being written. If empty, save uses 8 MiB and
  /// begin_save 256 MiB. If the data does not fit, the call waits for space.
  std::optional<std::uint64_t> staging_bytes = {};
  BeginReturns returns = BeginReturns::kWhenCopied;  ///< for begin_save alone
  ReadBack read_back = ReadBack::kBeforeOlderGoes;
};

struct SaveResult {
  std::string directory;      ///< checkpoint directory, relative to the job's root
  std::uint64_t bytes = 0;    ///< number of bytes that this rank wrote
  std::uint64_t tensors = 0;  ///< number of tensors in the whole checkpoint
  std::uint64_t objects = 0;
  /// Messages for the operator, such as iterations that could not be removed.
  std::vector<std::string> log;
};

/// A save that is written in the background. Only poll and finish commit it. If this object is
/// destroyed before the commit, the destructor waits for the background work and leaves no
/// checkpoint; the next save of the same iteration removes the files that were written. A
/// moved-from object may be destroyed, assigned to and moved from again; its poll and finish throw
/// USAGE.
class SaveInFlight {
 public:
  SaveInFlight(SaveInFlight&&) noexcept;
  SaveInFlight& operator=(SaveInFlight&&) noexcept;
  ~SaveInFlight();

  /// Waits until the state has been copied; from then on, the caller may change it. Returns at once
  /// if begin_save returned only then (BeginReturns). Not collective. Throws nothing if a copy
  /// fails: poll and finish then throw on all ranks.
  void wait_for_staging();
  /// Returns true once the checkpoint is committed. If all ranks have written their parts, this
  /// call commits the checkpoint. Never waits for a rank that is still writing.
  bool poll();
  /// Waits until all ranks have written their parts, and commits. A second call returns the same
  /// result.
  SaveResult finish();

 private:
  friend struct JobAccess;
  explicit SaveInFlight(std::unique_ptr<struct Flight> flight);
  std::unique_ptr<struct Flight> flight_;
};

/// Copies the state and returns; from then on, the caller may change the state, unless
/// options.returns says that the copies may still run. Only one save per
/// directory may be in flight; a second one throws LOCKED. Throws USAGE on all ranks if their
/// options differ. If an Error is thrown, no checkpoint was added and an existing one is intact,
/// except in one case: if the Error comes after the new checkpoint was confirmed, the new
/// checkpoint exists, and the tracker may still refer to the older one.
[[nodiscard]] SaveInFlight begin_save(Job& job, const State& state, const SaveOptions& options);

/// Saves the state. Blocks until the checkpoint is committed and would survive a power cut.
SaveResult save(Job& job, const State& state, const SaveOptions& options);

}  // namespace REPRISE_API
