#pragma once
// Describes faults as plain data: what a fault does, where it strikes, and whether it has struck.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/types.hpp"
#include "sim/faults/checkpoint_file.hpp"

namespace reprise::sim {

enum class FaultKind : std::uint8_t {
  kCrash,  ///< the rank dies

  // Faults of one write to a file.
  kWriteError,  ///< the write fails (IO), and nothing reaches the file
  kNoSpace,     ///< half of the bytes reach the file, then NO_SPACE
  kShortWrite,  ///< half of the bytes reach the file, but the call reports all of them
  kTornWrite,   ///< half of the bytes reach the disk, then the rank dies
  kFlipWrite,   ///< one bit is flipped in the file
  kZeroWrite,   ///< zeros reach the file
  kStaleWrite,  ///< the bytes reach the file that an older checkpoint has at that place

  // Faults of syncs, leases and name changes.
  kSyncError,           ///< a file's sync fails (IO)
  kDirectorySyncError,  ///< a directory's sync fails (IO)
  kLostSync,            ///< a sync reports success without making the file durable
  kLostRename,          ///< a call reports success without renaming or exchanging
  kLeaseLost,           ///< the lease's term ends, and another writer takes the lease
  /// Another writer takes a lock's lease right after the rank took it, and begins a save there: an
  /// unfinished directory and a tracker that is not published yet.
  kOtherWriter,
  kFleetingRename,  ///< a power cut undoes the rename, since later directory syncs do nothing

  // Faults of one read of a file.
  kReadError,  ///< the read fails (IO)
  kFlipRead,   ///< one bit is flipped in memory

  // Faults of the rank's view of the store. After the fault, the rank sees an outdated store, as
  // through an old cache.
  kStaleTracker,  ///< the tracker still names the checkpoint before the newest one
  kStaleStore,    ///< as kStaleTracker; in addition the newest checkpoint is missing

  // Faults of one collective call.
  kLate,   ///< the rank arrives `delay_ns` late
  kLost,   ///< the rank never arrives; its process is ended `delay_ns` later
  kFails,  ///< the call fails at this rank with PEER_FAILED, and the rank takes no part

  kBadResult,  ///< a result that the job validates is wrong
};

enum class FaultMoment : std::uint8_t {
  kBefore,  ///< at the start of the phase or step; only for crash, late and lost
  kDuring,  ///< at a port call between start and end
  kAfter,   ///< at the end of the phase or step; only for crash, late and lost
};

/// Says where a fault strikes: at one of the events on its rank. Events are counted from the moment
/// when the fault was armed.
struct FaultPlace {
  GlobalRank rank = {};
  /// Name of a phase as in the trace ("plan", "commit"; see reprise/ports.hpp). If empty, every
  /// phase matches.
  std::string phase = {};
  /// Step of a protocol, such as "swap_in". Only the rank that runs this step reaches it. If empty,
  /// the fault strikes anywhere in the phase, from the phase's first begin event to its last end
  /// event.
  std::string step = {};
  FaultMoment moment = FaultMoment::kDuring;
  /// Number of the matching event at which the fault strikes, counted from 0. What matches depends
  /// on `moment`: for kBefore, each begin of the phase or step; for kAfter, each end; for kDuring,
  /// each call that this kind of fault can strike, such as a write to a file for a write error or
  /// any call for a crash.
  std::int64_t nth = 0;
  /// If set, only calls on a file of this kind match, and calls without a file do not. If empty,
  /// any call matches.
  std::optional<FileKind> file = {};
};

enum class ResultFault : std::uint8_t {
  kTransientError,   ///< the result is wrong in one run
  kPersistentError,  ///< the result is wrong in every run on one device
  kCorrectResult,    ///< the result is the same in every run on every device
};

/// Values of fatal results. None of them is finite.
enum class BadValue : std::uint8_t { kNaN, kInfinity, kMinusInfinity };

/// Says which result of a job is wrong, and which value the job gets instead.
struct BadResult {
  ResultFault kind = ResultFault::kTransientError;
  bool fatal = true;  ///< true: the result is `value`; false: it is 1000 times the right result
  BadValue value = BadValue::kNaN;  ///< only for a fatal result
  int call = 0;                     ///< index of the validation in the iteration
  int run = 0;                      ///< for kTransientError: 0 the initial run, 1 the first re-run
  std::int64_t iteration = -1;      ///< the iteration's number; -1 until the fault is armed
  std::string device = {};          ///< for kPersistentError: the broken device
};

struct FaultSpec {
  FaultKind kind = FaultKind::kCrash;
  FaultPlace place = {};
  std::uint64_t delay_ns = 0;  ///< only for kLate and kLost
  /// For kFlipWrite and kFlipRead: which bit of the call's data to flip. Taken modulo the number of
  /// bits in the data.
  std::uint64_t bit = 0;
  BadResult result = {};  ///< only for kBadResult
};

/// Progress of a fault. Each flag implies the flags above it.
struct FaultState {
  FaultSpec spec;
  bool armed = false;      ///< the fault can strike from now on
  bool reached = false;    ///< the rank reached the fault's phase, file or result
  bool fired = false;      ///< the fault struck
  std::string where = {};  ///< where it struck: "commit/tracker: write of run/iter_0000002..."
};

/// Returns "crash", "write_error", ...; fault_named() is the inverse.
std::string_view name_of(FaultKind kind);
std::vector<std::string_view> fault_names();
std::optional<FaultKind> fault_named(std::string_view name);
/// Returns "before", "during", "after"; moment_named() is the inverse.
std::string_view name_of(FaultMoment moment);
std::vector<std::string_view> moment_names();
std::optional<FaultMoment> moment_named(std::string_view name);
/// Returns "transient_error", "persistent_error" or "correct_result"; result_fault_named() is the
/// inverse.
std::string_view name_of(ResultFault kind);
std::vector<std::string_view> result_fault_names();
std::optional<ResultFault> result_fault_named(std::string_view name);

/// Returns "nan", "inf", "-inf"; bad_value_named() is the inverse.
std::span<const std::string_view> bad_values();
std::string_view name_of(BadValue value);
std::optional<BadValue> bad_value_named(std::string_view name);

/// True if the fault ends its rank's life.
bool ends_life(FaultKind kind);
/// True if the fault outlasts its life: a broken device, or a problem in the model.
bool outlives(const FaultSpec& spec);
/// Throws USAGE with the reason if the fault is impossible, such as a write error before a phase.
void require_possible(const FaultSpec& spec);
/// Returns text such as "crash of rank 1 before commit/tracker".
std::string to_string(const FaultSpec& spec);

}  // namespace reprise::sim
