#pragma once
// Faults of the world as plain data: their kind, place, and progress.

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

  // One write to a file.
  kWriteError,  ///< fails (IO), nothing reaches the file
  kNoSpace,     ///< half of it reaches the file, then NO_SPACE
  kShortWrite,  ///< half of it reaches the file, the call reports all of it
  kTornWrite,   ///< half of it reaches the disk, then the rank dies
  kFlipWrite,   ///< one bit is flipped in the file

  // Making durable, and names.
  kSyncError,           ///< a file's sync fails (IO)
  kDirectorySyncError,  ///< a directory's sync fails (IO)
  kLostSync,            ///< reports success without making the file durable
  kLostRename,          ///< reports success without renaming or exchanging
  kLeaseLost,           ///< another writer first takes the lease, whose term is over
  kFleetingRename,      ///< is done, but lost in a power cut: later directory syncs lie

  // One read of a file.
  kReadError,  ///< fails (IO)
  kFlipRead,   ///< one bit is flipped in memory

  // The rank's view of the store from then on, as with outdated caches.
  kStaleTracker,  ///< the tracker still names the checkpoint before the newest
  kStaleStore,    ///< likewise, and the newest checkpoint is missing

  // One collective call.
  kLate,   ///< the rank arrives `delay_ns` late
  kLost,   ///< the rank never arrives; its process is ended `delay_ns` later
  kFails,  ///< the call fails at this rank (PEER_FAILED), which takes no part

  kBadResult,  ///< a result that the job validates is wrong
};

enum class FaultMoment : std::uint8_t {
  kBefore,  ///< at the start of the phase or step; for crash, late and lost
  kDuring,  ///< at a port call between start and end
  kAfter,   ///< at the end; for crash, late and lost
};

/// Place where a fault strikes: the n-th match by its rank after the fault was armed.
struct FaultPlace {
  GlobalRank rank = {};
  /// Phase name as in the trace ("plan", "commit"; see reprise/ports.hpp); empty: anywhere.
  std::string phase = {};
  /// Step of a protocol ("swap_in"), which only the rank that runs it reaches. Empty: the phase
  /// from its first begin to its last end.
  std::string step = {};
  FaultMoment moment = FaultMoment::kDuring;
  /// Counts from 0. kBefore, kAfter: such begins, ends. kDuring: calls that this kind can strike;
  /// for a crash that is any call, for a write error a write to a file, and so on.
  std::int64_t nth = 0;
  /// File that the call must concern; nothing: any. If set, calls without a file do not count.
  std::optional<FileKind> file = {};
};

enum class ResultFault : std::uint8_t {
  kTransientError,   ///< wrong in one run
  kPersistentError,  ///< wrong in every run on one device
  kCorrectResult,    ///< the same in every run everywhere: no device is at fault
};

/// Value of a fatal result; none is a finite number.
enum class BadValue : std::uint8_t { kNaN, kInfinity, kMinusInfinity };

/// Selects the wrong result of a job, and its value.
struct BadResult {
  ResultFault kind = ResultFault::kTransientError;
  bool fatal = true;                ///< true: `value`; false: 1000 times the right result
  BadValue value = BadValue::kNaN;  ///< for a fatal result
  int call = 0;                     ///< index of the validation in the iteration
  int run = 0;                      ///< kTransientError: 0 the initial run, 1 the first re-run
  std::int64_t iteration = -1;      ///< iteration being tried; -1: set when armed
  std::string device = {};          ///< kPersistentError: the broken device; also set when armed
};

struct FaultSpec {
  FaultKind kind = FaultKind::kCrash;
  FaultPlace place = {};
  std::uint64_t delay_ns = 0;  ///< kLate, kLost
  /// kFlipWrite, kFlipRead: index of the bit in the call's bytes, modulo their number.
  std::uint64_t bit = 0;
  BadResult result = {};  ///< kBadResult
};

/// Progress of a fault. Each flag implies the one before.
struct FaultState {
  FaultSpec spec;
  bool armed = false;      ///< the program set it
  bool reached = false;    ///< its rank came to its phase, file or result
  bool fired = false;      ///< it struck
  std::string where = {};  ///< place: "commit/tracker: write of run/iter_0000002..."
};

/// Returns "crash", "write_error", ...; fault_named() is the inverse.
std::string_view name_of(FaultKind kind);
std::vector<std::string_view> fault_names();
std::optional<FaultKind> fault_named(std::string_view name);
/// Returns "before", "during", "after"; moment_named() is the inverse.
std::string_view name_of(FaultMoment moment);
std::vector<std::string_view> moment_names();
std::optional<FaultMoment> moment_named(std::string_view name);
/// Returns "transient_error", "persistent_error", "correct_result"; with the inverse.
std::string_view name_of(ResultFault kind);
std::vector<std::string_view> result_fault_names();
std::optional<ResultFault> result_fault_named(std::string_view name);

/// Returns "nan", "inf", "-inf"; bad_value_named() is the inverse.
std::span<const std::string_view> bad_values();
std::string_view name_of(BadValue value);
std::optional<BadValue> bad_value_named(std::string_view name);

/// True if the fault ends its rank's life.
bool ends_life(FaultKind kind);
/// True if the fault outlives its incarnation: a broken device, or a problem in the model.
bool outlives(const FaultSpec& spec);
/// Throws USAGE with the reason if such a fault is impossible: an error of a write before a phase.
void require_possible(const FaultSpec& spec);
/// Returns "crash of rank 1 before commit/tracker".
std::string to_string(const FaultSpec& spec);

}  // namespace reprise::sim
