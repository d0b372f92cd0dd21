#pragma once
// Defines the vocabulary of the rerun machine, as in Megatron: modes, states, votes of a
// validation, diagnoses, and their form in a checkpoint.
//
//   initial run: result rejected
//     run again in place:            result differs     -> transient error
//                                    result reproduced  -> fault checkpoint, exit 16
//   restarted from the fault checkpoint, on another device
//     run again:                     result differs     -> persistent error
//                                    result reproduced  -> the result is correct

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "reprise/value.hpp"

namespace reprise::sim {

/// Exit code of a job that must be restarted from the newest checkpoint on another device.
inline constexpr int kExitForRerun = 16;
/// Exit code of a job that has diagnosed a fault.
inline constexpr int kExitAfterDiagnosis = 17;
/// Exit code of a job that got a fatal result while its rerun machine was disabled.
inline constexpr int kExitRejected = 1;

enum class RerunMode : std::uint8_t { kDisabled, kValidateResults, kReportDeterminismStats };

/// State of the machine, numbered as on disk. Only kNotRunningYet and kWillRerunFromCheckpoint are
/// ever saved.
enum class RerunState : std::uint8_t {
  kNotRunningYet,                ///< between iterations
  kInitialRun,                   ///< first run of an iteration
  kRerunningInPlace,             ///< second run of an iteration
  kWillRerunFromCheckpoint,      ///< a fault checkpoint is due, or was loaded
  kRerunningFromCheckpoint,      ///< the only run after a restart
  kRerunningAgainFromCheckpoint  ///< the run after the restart used the suspicious device again
};

enum class RerunDiagnosis : std::uint8_t {
  kNone,
  kCorrectResult,   ///< another device gives the same result
  kTransientError,  ///< the same device gives a different result in a re-run
  /// The same device gives the same result again, but another device gives a different result.
  kPersistentError
};

/// Says after which run a rejected result was logged, and whether that run reproduced the result.
enum class RerunStatus : std::uint8_t {
  kRerunDisabled,
  kInitialRun,
  kFirstRerunNotReproducible,
  kFirstRerunReproducible,
  kSecondRerunNotReproducible,
  kSecondRerunReproducible
};

/// Each overload returns a name, such as "validate_results", "WILL_RERUN_FROM_CHECKPOINT",
/// "transient_error" (or "none") and "first_rerun_reproducible".
std::string_view name_of(RerunMode mode);
std::string_view name_of(RerunState state);
std::string_view name_of(RerunDiagnosis diagnosis);
std::string_view name_of(RerunStatus status);
std::span<const std::string_view> rerun_modes();
/// Returns the mode of that name. Throws USAGE with the known names if there is none.
RerunMode rerun_mode_named(std::string_view name);
RerunDiagnosis rerun_diagnosis_named(std::string_view name);

std::ostream& operator<<(std::ostream& out, RerunMode mode);
std::ostream& operator<<(std::ostream& out, RerunState state);
std::ostream& operator<<(std::ostream& out, RerunDiagnosis diagnosis);
std::ostream& operator<<(std::ostream& out, RerunStatus status);

/// Vote of one rank at the end of a run; all ranks act on the union.
enum class Vote : std::uint8_t {
  kRerun,         ///< a result was rejected: run again
  kCheckpoint,    ///< the result was reproduced and is fatal: another device must decide
  kRestartAgain,  ///< the re-run was still on the suspicious device
  kContinue,      ///< the result is not fatal: continue
  kFail,          ///< the result is fatal, and the machine is disabled
  // These votes report a diagnosis. They do not affect what the job does next.
  kTransientError,
  kPersistentError,
  kCorrectResult,
};
inline constexpr int kVotes = 8;

class RerunVotes {
 public:
  RerunVotes() = default;
  RerunVotes(std::initializer_list<Vote> votes) {
    for (const Vote vote : votes) add(vote);
  }
  bool has(Vote vote) const { return (bits_ >> static_cast<unsigned>(vote) & 1U) != 0; }
  void add(Vote vote) {
    bits_ = static_cast<std::uint8_t>(bits_ | 1U << static_cast<unsigned>(vote));
  }
  /// Returns the union: every vote that is in `a` or `b`.
  friend RerunVotes operator|(RerunVotes a, RerunVotes b) {
    a.bits_ = static_cast<std::uint8_t>(a.bits_ | b.bits_);
    return a;
  }
  friend bool operator==(RerunVotes, RerunVotes) = default;

 private:
  std::uint8_t bits_ = 0;
};

/// Formats of a job's checkpoints, by Megatron's names. Every checkpoint is written as torch_dist;
/// the format only decides what the checkpoint contains.
enum class CheckpointFormat : std::uint8_t { kTorchDist, kTorch, kTorchDcp, kFsdpDtensor, kZarr };
std::span<const std::string_view> checkpoint_formats();
std::string_view name_of(CheckpointFormat format);
/// Returns the format of that name. Throws USAGE with a suggestion if there is none.
CheckpointFormat checkpoint_format_named(std::string_view name);

/// Each function encodes an enum member in the form that Megatron's reader expects: RerunState(3),
/// RerunMode('validate_results'). RerunDiagnosis::kNone is encoded as None.
Value encode(RerunMode mode);
Value encode(RerunState state);
Value encode(RerunDiagnosis diagnosis);
/// Each function returns an enum member. Throws LOAD_REJECTED if the value has another form or an
/// unknown member name.
RerunMode decode_mode(const Value& value);
RerunState decode_state(const Value& value);
RerunDiagnosis decode_diagnosis(const Value& value);

}  // namespace reprise::sim
