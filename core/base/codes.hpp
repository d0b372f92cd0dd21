#pragma once
// All codes: those of the public enumeration, which an Error may carry, and those that judges alone
// say. They are of one type and have one range of numbers and one table of printed names.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "reprise/error.hpp"

namespace reprise {

/// True for codes that an Error may carry, false for those that judges alone say.
constexpr bool is_error(Code code) { return code <= Code::kInternal; }

/// Verdicts on a job or on a checkpoint. Reports and the expectations of scenarios use the printed
/// names.
namespace judged {

inline constexpr std::uint32_t kFirst = static_cast<std::uint32_t>(Code::kInternal) + 1;

/// An element differs and nothing known explains how.
inline constexpr Code kBitMismatch{kFirst + 0};
/// An element is another tensor's, or another rank's part.
inline constexpr Code kWrongOwner{kFirst + 1};
/// An element is another index's of the same tensor.
inline constexpr Code kShiftedBytes{kFirst + 2};
/// Zeros stand where there was content.
inline constexpr Code kZeroFill{kFirst + 3};
/// The poison that stood there before the load.
inline constexpr Code kNotFilled{kFirst + 4};
/// Copies that should be equal differ.
inline constexpr Code kReplicaMismatch{kFirst + 5};
/// A value or object is not back, or not the same.
inline constexpr Code kLostObject{kFirst + 6};
/// Two runs differ at some later step.
inline constexpr Code kTrajectoryDivergence{kFirst + 7};
/// Nothing was compared.
inline constexpr Code kOracleVacuous{kFirst + 8};
/// An element is another shard's of the same tensor, at the same place.
inline constexpr Code kPermutedShards{kFirst + 9};
/// An element is another component's of the same fused tensor.
inline constexpr Code kPermutedComponents{kFirst + 10};
/// An element is its own place's at another step.
inline constexpr Code kStaleBytes{kFirst + 11};
/// An element was staged before it was there, or after the job went on.
inline constexpr Code kTornSnapshot{kFirst + 12};
/// A random stream equals one that it should differ from.
inline constexpr Code kRngStreamCollapse{kFirst + 13};
/// A random stream moved otherwise than by the steps trained.
inline constexpr Code kRngDrift{kFirst + 14};
/// No whole checkpoint is left of those that were committed.
inline constexpr Code kLastGoodDeleted{kFirst + 15};
/// A save ended well, and no tracker names it.
inline constexpr Code kCommitMissing{kFirst + 16};
/// Ranks went on from different checkpoints.
inline constexpr Code kMixedGeneration{kFirst + 17};
/// Samples were lost or seen twice.
inline constexpr Code kDataStreamSkip{kFirst + 18};
/// Restarts go round without an end and nobody is told.
inline constexpr Code kRestartLoop{kFirst + 19};
/// Ranks disagree on what came of an operation.
inline constexpr Code kVerdictDisagreement{kFirst + 20};
/// More memory was held than was declared.
inline constexpr Code kMemPeakExceeded{kFirst + 21};
/// More checkpoints are left than are to be kept.
inline constexpr Code kRetentionExceeded{kFirst + 22};
/// Bytes left storage again that one read was to bring to all ranks.
inline constexpr Code kReadTwice{kFirst + 23};
/// The schedule counted other samples than those that were trained on.
inline constexpr Code kScheduleDrift{kFirst + 24};
/// Equal state is stored as different content.
inline constexpr Code kContentDiffers{kFirst + 25};
/// One seed, and two courses.
inline constexpr Code kNotDeterministic{kFirst + 26};
/// One scenario, and another course on another lane.
inline constexpr Code kLanesDisagree{kFirst + 27};
/// A wrong engine passed.
inline constexpr Code kMutantSurvived{kFirst + 28};
/// Every wrong engine passed.
inline constexpr Code kValidatorVacuous{kFirst + 29};

}  // namespace judged

inline constexpr std::size_t kCodes = static_cast<std::size_t>(judged::kValidatorVacuous) + 1;

/// Inverse of name_of; empty if there is no such name.
std::optional<Code> code_named(std::string_view name);

}  // namespace reprise
