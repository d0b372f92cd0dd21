#pragma once
// What goes wrong in the world, as plain data: which kind, at which place, and how far it came.

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
  kWriteError,  ///< fails (IO), nothing of it reaches the file
  kNoSpace,     ///< half of it reaches the file, then NO_SPACE
  kShortWrite,  ///< half of it reaches the file, all of it is reported as done
  kTornWrite,   ///< half of it reaches the disk, then the rank dies
  kFlipWrite,   ///< one bit of it is another one in the file

  // Making durable, and names.
  kSyncError,           ///< a file's sync fails (IO)
  kDirectorySyncError,  ///< a directory's sync fails (IO)
  kLostSync,            ///< a file's sync is reported as done and was not
  kLostRename,          ///< a rename or exchange is reported as done and was not
  kLeaseLost,           ///< before one another writer takes the lease, whose term is over
  kFleetingRename,      ///< it is done, and gone after a power cut: its directories' next syncs lie

  // One read of a file.
  kReadError,  ///< fails (IO)
  kFlipRead,   ///< one bit of it is another one in memory

  // What a rank sees of the store from then on, as one whose caches lag behind.
  kStaleTracker,  ///< the tracker names the checkpoint before the newest
  kStaleStore,    ///< the same, and the newest is not there

  // One collective call.
  kLate,   ///< the rank comes to it `delay_ns` late
  kLost,   ///< the rank never comes to it; its process is ended `delay_ns` later
  kFails,  ///< the call fails at this rank (PEER_FAILED), which takes no part in it

  kBadResult,  ///< a result that the job validates is wrong
};

enum class FaultMoment : std::uint8_t {
  kBefore,  ///< where the phase or step begins; for crash, late and lost
  kDuring,  ///< at a port call between its begin and its end
  kAfter,   ///< where it ends; for crash, late and lost
};

/// Where a fault strikes: the n-th time after it was armed that its rank comes to such a place.
struct FaultPlace {
  GlobalRank rank = {};
  /// As the trace says it ("plan", "commit"; see reprise/ports.hpp); empty: anywhere.
  std::string phase = {};
  /// Of a protocol ("swap_in"): the rank that runs it alone comes there. Empty: the phase from its
  /// first begin to its last end.
  std::string step = {};
  FaultMoment moment = FaultMoment::kDuring;
  /// From 0. kBefore, kAfter: of such begins, ends. kDuring: of calls that this kind can strike;
  /// for a crash that is any call, for a write error a write to a file, and so on.
  std::int64_t nth = 0;
  /// The file that the call is about; nothing: anything. Calls without a file then do not count.
  std::optional<FileKind> file = {};
};

enum class ResultFault : std::uint8_t {
  kTransientError,   ///< wrong in one run
  kPersistentError,  ///< wrong in every run on one device
  kCorrectResult,    ///< the same in every run everywhere: it is no fault of any device
};

/// What a fatal result is; all three are no finite number.
enum class BadValue : std::uint8_t { kNaN, kInfinity, kMinusInfinity };

/// Which of a job's results is wrong, and how.
struct BadResult {
  ResultFault kind = ResultFault::kTransientError;
  bool fatal = true;                ///< otherwise a thousand times what is right
  BadValue value = BadValue::kNaN;  ///< if it is fatal
  int call = 0;                     ///< which validation of the iteration
  int run = 0;                      ///< kTransientError: 0 the initial run, 1 the first re-run
  std::int64_t iteration = -1;      ///< that is being tried; -1: told when it is armed
  std::string device = {};          ///< kPersistentError: the one that is broken, likewise
};

struct FaultSpec {
  FaultKind kind = FaultKind::kCrash;
  FaultPlace place = {};
  std::uint64_t delay_ns = 0;  ///< kLate, kLost
  /// kFlipWrite, kFlipRead: which bit of the call's bytes; counted modulo their number.
  std::uint64_t bit = 0;
  BadResult result = {};  ///< kBadResult
};

/// How far a fault came. Each implies the one before.
struct FaultState {
  FaultSpec spec;
  bool armed = false;      ///< it was set
  bool reached = false;    ///< its rank came to its phase, file or result
  bool fired = false;      ///< it did it
  std::string where = {};  ///< it fired: "commit/tracker: write of run/iter_0000002..."
};

/// "crash", "write_error", ...; and the inverse.
std::string_view name_of(FaultKind kind);
std::vector<std::string_view> fault_names();
std::optional<FaultKind> fault_named(std::string_view name);
/// "before", "during", "after"; and the inverse.
std::string_view name_of(FaultMoment moment);
std::vector<std::string_view> moment_names();
std::optional<FaultMoment> moment_named(std::string_view name);
/// "transient_error", "persistent_error", "correct_result"; and the inverse.
std::string_view name_of(ResultFault kind);
std::vector<std::string_view> result_fault_names();
std::optional<ResultFault> result_fault_named(std::string_view name);

/// "nan", "inf", "-inf"; and the inverse.
std::span<const std::string_view> bad_values();
std::string_view name_of(BadValue value);
std::optional<BadValue> bad_value_named(std::string_view name);

/// True if it ends its rank's life.
bool ends_life(FaultKind kind);
/// True if it outlives its incarnation: what is wrong with a device, or with the model.
bool outlives(const FaultSpec& spec);
/// USAGE, saying why, if such a fault can't be: an error of a write before a phase.
void require_possible(const FaultSpec& spec);
/// "crash of rank 1 before commit/tracker".
std::string to_string(const FaultSpec& spec);

}  // namespace reprise::sim
