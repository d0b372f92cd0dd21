#pragma once
// All codes: the public enumeration, which an Error may carry, and codes that only judges report.
// They share one type, one number range and one table of printed names.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "reprise/error.hpp"

namespace reprise {

/// True for codes that an Error may carry, false for codes that only judges report.
constexpr bool is_error(Code code) { return code <= Code::kInternal; }

/// Verdicts on a job or a checkpoint. Reports and scenario expectations use the printed
/// names.
namespace judged {

inline constexpr std::uint32_t kFirst = static_cast<std::uint32_t>(Code::kInternal) + 1;

/// An element differs, and no known cause explains it.
inline constexpr Code kBitMismatch{kFirst + 0};
/// An element belongs to another tensor or to another rank's part.
inline constexpr Code kWrongOwner{kFirst + 1};
/// An element belongs to another index of the same tensor.
inline constexpr Code kShiftedBytes{kFirst + 2};
/// Content was replaced by zeros.
inline constexpr Code kZeroFill{kFirst + 3};
/// An element still has the poison from before the load.
inline constexpr Code kNotFilled{kFirst + 4};
/// Replicas that should be equal differ.
inline constexpr Code kReplicaMismatch{kFirst + 5};
/// A value or object was not restored, or was restored differently.
inline constexpr Code kLostObject{kFirst + 6};
/// Two runs differ at a later step.
inline constexpr Code kTrajectoryDivergence{kFirst + 7};
/// Nothing was compared.
inline constexpr Code kOracleVacuous{kFirst + 8};
/// An element belongs to another shard of the same tensor, at the same position.
inline constexpr Code kPermutedShards{kFirst + 9};
/// An element belongs to another component of the same fused tensor.
inline constexpr Code kPermutedComponents{kFirst + 10};
/// An element has the value of another step.
inline constexpr Code kStaleBytes{kFirst + 11};
/// An element was staged before it was ready, or after the job continued.
inline constexpr Code kTornSnapshot{kFirst + 12};
/// Two random streams that should differ are equal.
inline constexpr Code kRngStreamCollapse{kFirst + 13};
/// A random stream advanced by more or less than the steps trained.
inline constexpr Code kRngDrift{kFirst + 14};
/// None of the committed checkpoints is left undamaged.
inline constexpr Code kLastGoodDeleted{kFirst + 15};
/// A save succeeded, but no tracker names it.
inline constexpr Code kCommitMissing{kFirst + 16};
/// Ranks resumed from different checkpoints.
inline constexpr Code kMixedGeneration{kFirst + 17};
/// Samples were lost or seen twice.
inline constexpr Code kDataStreamSkip{kFirst + 18};
/// Restarts repeat endlessly, and nobody is notified.
inline constexpr Code kRestartLoop{kFirst + 19};
/// Ranks disagree on the outcome of an operation.
inline constexpr Code kVerdictDisagreement{kFirst + 20};
/// More memory was used than declared.
inline constexpr Code kMemPeakExceeded{kFirst + 21};
/// More checkpoints are left than should be kept.
inline constexpr Code kRetentionExceeded{kFirst + 22};
/// Bytes were read from storage more than once per job.
inline constexpr Code kReadTwice{kFirst + 23};
/// The schedule counted other samples than those trained on.
inline constexpr Code kScheduleDrift{kFirst + 24};
/// Equal state was stored with different content.
inline constexpr Code kContentDiffers{kFirst + 25};
/// Two runs with one seed took different courses.
inline constexpr Code kNotDeterministic{kFirst + 26};
/// One scenario took different courses on two lanes.
inline constexpr Code kLanesDisagree{kFirst + 27};
/// A faulty engine passed the checks.
inline constexpr Code kMutantSurvived{kFirst + 28};
/// All faulty engines passed the checks.
inline constexpr Code kValidatorVacuous{kFirst + 29};

}  // namespace judged

inline constexpr std::size_t kCodes = static_cast<std::size_t>(judged::kValidatorVacuous) + 1;

/// Returns the code with that name; empty if there is none.
std::optional<Code> code_named(std::string_view name);

}  // namespace reprise
