#pragma once
// Saves a job's state as a checkpoint in the format of PyTorch's distributed checkpoint and
// Megatron-Core. Every call is collective: all ranks of the job make the same calls in the same
// order, and an Error is the same on all of them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/error.hpp"
#include "reprise/tensor.hpp"
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

/// What a save does if ranks hold copies of an object, of bytes, or (SaveOptions::compare_tensors)
/// of a box of a tensor, and these are not the same. Only one copy is written, so what the other
/// ranks hold is lost.
enum class UnequalCopies : std::uint8_t {
  kReported,  ///< in SaveResult::unequal and SaveResult::log
  kRefused,   ///< throws COMMON_STATE_DIVERGES before anything is visible
};

/// An object, or a box of a tensor, of which ranks hold copies that are not the same.
struct UnequalCopy {
  std::string key;                    ///< as stored
  Dims offset = {};                   ///< of the box; of an object none
  std::int32_t writer = 0;            ///< rank whose copy is written
  std::vector<std::int32_t> holders;  ///< ranks that hold another one, ascending
};

/// Origin of a save's plan.
enum class Planned : std::uint8_t {
  kFresh,      ///< planned anew, because nothing was kept
  kReplanned,  ///< planned anew, because the kept plan did not fit; SaveResult::log says why
  kReused,     ///< the kept plan; ranks exchanged 16 bytes each instead of planning
};
/// Returns "fresh", "replanned" or "reused".
std::string_view name_of(Planned planned);

struct SaveOptions {
  /// Path relative to the job's root. If `step` is set, the checkpoint is in `directory`, under a
  /// name of `step_names`. Otherwise the checkpoint is `directory` itself.
  std::string directory;
  std::optional<std::int64_t> step = {};
  /// Name of the directory of an iteration: text with one %d, or one %07d for a number of at least
  /// 7 digits, such as "step-%d". The default is Megatron's: a tracker in `directory` then names
  /// the newest iteration. With other names there is no tracker, and the newest is that with the
  /// highest number.
  std::string step_names = "iter_%07d";
  Checksums checksums = Checksums::kCrc32;
  /// Number of iterations to keep in `directory`, including the new one; at least 1. Allowed only
  /// with a step. If empty, all are kept.
  std::optional<std::int32_t> keep = {};
  bool replace = true;  ///< if false, throws USAGE when a checkpoint of that name exists
  /// Upper limit on memory for copies of data being written. If empty, save uses 8 MiB, and
  /// begin_save as much as this rank writes. If the data does not fit, the call waits until some of
  /// it has been written.
  std::optional<std::uint64_t> staging_bytes = {};
  /// Number of bytes that are copied, checksummed and written at a time: at least 4096, and never
  /// more than `staging_bytes`.
  std::uint64_t batch_bytes = std::uint64_t{1} << 20U;
  BeginReturns returns = BeginReturns::kWhenCopied;  ///< for begin_save alone
  ReadBack read_back = ReadBack::kBeforeOlderGoes;
  /// Name under which the job keeps the plan of this save for the next one: all saves of one kind
  /// of state have one name. The plan is used again while keys, shapes, boxes and ranks stay the
  /// same, which ranks compare in each save. Empty: no plan is kept.
  std::string structure = "state";
  UnequalCopies unequal = UnequalCopies::kReported;
  /// If true, copies of the boxes of tensors are compared, too. Each rank then reads all of its
  /// memory once more, and the ranks exchange 16 bytes for each box that a rank holds.
  bool compare_tensors = false;
  /// Stream of the job's device on which the state was computed: a cudaStream_t. Null: the stream
  /// of the device. Not the same on all ranks.
  void* stream = nullptr;
};

struct SaveResult {
  std::string directory;      ///< checkpoint directory, relative to the job's root
  std::uint64_t bytes = 0;    ///< number of bytes that this rank wrote
  std::uint64_t tensors = 0;  ///< number of tensors in the whole checkpoint
  std::uint64_t objects = 0;
  Planned planned = Planned::kFresh;
  std::uint64_t staging_bytes = 0;  ///< largest amount of memory that this rank used for copies
  /// True if the call that copied the state waited for data to be written, because `staging_bytes`
  /// was less than this rank writes.
  bool waited_for_staging = false;
  /// Upper limit on the memory that this rank uses, besides the job's own memory, until its part is
  /// durable. Covers batches and encoded objects, but neither the plan nor the metadata that the
  /// leader writes. Known before the save begins.
  std::uint64_t bound_staging = 0;
  /// The same limit for a rank that holds no tensor data except single-element tensors. It is the
  /// sum of a constant and the size of the objects and single elements that the rank writes.
  std::uint64_t bound_empty = 0;
  std::uint64_t plan_signature = 0;  ///< of the plan of all ranks
  std::vector<UnequalCopy> unequal;  ///< the same on all ranks
  /// Messages for the operator, such as iterations that could not be removed, or why the plan was
  /// made again; the same on all ranks.
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
  /// Returns SaveResult::bound_staging.
  std::uint64_t bound_staging() const;

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

/// Something that a rank is to write: one of its boxes of a tensor, or an object or bytes.
struct WriteItem {
  std::string key;   ///< as stored: of an object with its coordinate and grid
  Dims offset = {};  ///< of the box, which the rank holds; of an object none
};

/// The same, but a planner of the job's own has decided who writes what: `writes` is this rank's
/// share. Throws NO_WRITER if a box or an object that is part of the state is in no rank's share,
/// or if a share names what its rank does not hold, and MULTI_WRITER if it is in several.
[[nodiscard]] SaveInFlight begin_save(Job& job, const State& state, const SaveOptions& options,
                                      std::span<const WriteItem> writes);
SaveResult save(Job& job, const State& state, const SaveOptions& options,
                std::span<const WriteItem> writes);

/// Saves the state. Blocks until the checkpoint is committed and would survive a power cut.
SaveResult save(Job& job, const State& state, const SaveOptions& options);

/// Outcome of a queued save.
struct EndedSave {
  SaveResult result;  ///< empty if the save failed
  /// Error of a failed save, the same on all ranks. A failed save normally leaves nothing visible.
  /// There are two exceptions: its checkpoint was confirmed, but the tracker could not be updated;
  /// or the old checkpoint could not be put back in its place.
  std::optional<Error> error;
};

/// Saves in flight, oldest first. Background tasks write them, and the job's own thread commits
/// them when it polls, on all ranks in the order in which they began:
///
///   begin A   train   poll   train   poll: A ends   train   begin B   train   finalize: B ends
///
/// At most a given number of saves is in flight, which also bounds staging: at the limit, begin
/// first finishes the oldest one. All calls are collective over the ranks of these saves, and all
/// ranks must begin the same saves. A save ends only during a call of this class; a save that
/// cannot start ends during begin. When a save ends, its `on_end` is called on the job's thread. If
/// `on_end` throws, the call passes the exception on, but the save has ended.
class SaveQueue {
 public:
  using OnEnd = std::function<void(const EndedSave&)>;

  /// At most `in_flight_max` saves are in flight, and each has its own staging. Throws USAGE if
  /// that is 0.
  explicit SaveQueue(std::size_t in_flight_max = 1);
  /// Waits for background work. Does not commit saves that are still in flight.
  ~SaveQueue();
  SaveQueue(const SaveQueue&) = delete;
  SaveQueue& operator=(const SaveQueue&) = delete;

  /// Waits until a slot is free and no save in flight writes the checkpoint that `options` names.
  /// Then begins a save as begin_save does.
  void begin(Job& job, const State& state, const SaveOptions& options, const OnEnd& on_end);
  /// The same, for a save that `save` begins with these options, such as by a share of writes.
  void begin(const SaveOptions& options, const std::function<SaveInFlight()>& save,
             const OnEnd& on_end);
  /// Waits until the copies of all saves in flight are done. A job whose saves return when their
  /// copies are queued (BeginReturns) calls this before it changes its state or moves it, such as
  /// before the optimizer's step.
  void wait_for_staging();
  /// Commits saves that are durable on all ranks, oldest first. Does not wait for saves that are
  /// not durable yet. Call it after each iteration.
  void poll();
  /// Waits for all saves and commits them. Call it before a load and before the job exits.
  void finalize();

  std::size_t in_flight() const;
  /// Returns the upper limit on this rank's staging for all saves in flight together, in bytes.
  std::uint64_t bound_staging() const;

 private:
  struct Saves;
  std::unique_ptr<Saves> saves_;
};

}  // namespace REPRISE_API
