#pragma once
// Defines the codes of findings. Some of them can also be the code of an Error; only judges use the
// others. Reports and the expectations of scenarios contain the printed names.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

#include "core/base/codes.hpp"

namespace reprise {

/// A code that a judge can use. A Code converts to a FindingCode, but not the other way round. An
/// Error is made from a Code, so it never carries a code that only judges use.
class FindingCode {
 public:
  constexpr FindingCode(Code code) : number_(static_cast<std::uint32_t>(code)) {}
  constexpr explicit FindingCode(std::uint32_t number) : number_(number) {}
  constexpr std::uint32_t number() const { return number_; }

  friend constexpr auto operator<=>(FindingCode, FindingCode) = default;

 private:
  std::uint32_t number_;
};

/// Codes that only judges use, for verdicts on a job or a checkpoint.
namespace judged {

inline constexpr std::uint32_t kFirst = kErrorCodesEnd;

/// An element differs, and no known cause explains it.
inline constexpr FindingCode kBitMismatch{kFirst + 0};
/// An element has a value from another tensor or from another rank's part.
inline constexpr FindingCode kWrongOwner{kFirst + 1};
/// An element has the value of another index of the same tensor.
inline constexpr FindingCode kShiftedBytes{kFirst + 2};
/// Content was replaced by zeros.
inline constexpr FindingCode kZeroFill{kFirst + 3};
/// An element still has the poison from before the load.
inline constexpr FindingCode kNotFilled{kFirst + 4};
/// Replicas that should be equal differ.
inline constexpr FindingCode kReplicaMismatch{kFirst + 5};
/// A value or object was not restored, or was restored differently.
inline constexpr FindingCode kLostObject{kFirst + 6};
/// Two runs differ at a later step.
inline constexpr FindingCode kTrajectoryDivergence{kFirst + 7};
/// Nothing was compared.
inline constexpr FindingCode kOracleVacuous{kFirst + 8};
/// An element has the value at the same position in another shard of the tensor.
inline constexpr FindingCode kPermutedShards{kFirst + 9};
/// An element has a value from another component of the same fused tensor.
inline constexpr FindingCode kPermutedComponents{kFirst + 10};
/// An element has the value of another step.
inline constexpr FindingCode kStaleBytes{kFirst + 11};
/// An element was staged before it was ready, or after the job continued.
inline constexpr FindingCode kTornSnapshot{kFirst + 12};
/// Two random streams that should differ are equal.
inline constexpr FindingCode kRngStreamCollapse{kFirst + 13};
/// A random stream advanced by more or by less than the trained steps require.
inline constexpr FindingCode kRngDrift{kFirst + 14};
/// No committed checkpoint is left undamaged.
inline constexpr FindingCode kLastGoodDeleted{kFirst + 15};
/// A save succeeded, but no tracker refers to its checkpoint.
inline constexpr FindingCode kCommitMissing{kFirst + 16};
/// Ranks resumed from different checkpoints, or a checkpoint holds files of two saves.
inline constexpr FindingCode kMixedGeneration{kFirst + 17};
/// Samples were lost or seen twice.
inline constexpr FindingCode kDataStreamSkip{kFirst + 18};
/// The job restarts endlessly, and nobody is notified.
inline constexpr FindingCode kRestartLoop{kFirst + 19};
/// Ranks disagree on the outcome of an operation.
inline constexpr FindingCode kVerdictDisagreement{kFirst + 20};
/// More memory was used than declared.
inline constexpr FindingCode kMemPeakExceeded{kFirst + 21};
/// More checkpoints are left than should be kept.
inline constexpr FindingCode kRetentionExceeded{kFirst + 22};
/// The job read the same bytes from storage more than once.
inline constexpr FindingCode kReadTwice{kFirst + 23};
/// The samples that the schedule counted are not the samples that were trained on.
inline constexpr FindingCode kScheduleDrift{kFirst + 24};
/// Equal state was stored with different content.
inline constexpr FindingCode kContentDiffers{kFirst + 25};
/// Two runs with one seed took different courses.
inline constexpr FindingCode kNotDeterministic{kFirst + 26};
/// One scenario took different courses on two lanes.
inline constexpr FindingCode kLanesDisagree{kFirst + 27};
/// A faulty engine passed the checks.
inline constexpr FindingCode kMutantSurvived{kFirst + 28};
/// All faulty engines passed the checks.
inline constexpr FindingCode kValidatorVacuous{kFirst + 29};
/// Copies declared equal have different bytes.
inline constexpr FindingCode kFalseReplica{kFirst + 30};
/// Ranks disagree on the keys of the same save.
inline constexpr FindingCode kKeysetAsymmetry{kFirst + 31};
/// A rank took a step that its save, load or rerun machine does not allow in that state.
inline constexpr FindingCode kProtocol{kFirst + 32};
/// The scenario passed on a retry, and not before.
inline constexpr FindingCode kFlaky{kFirst + 33};

inline constexpr std::size_t kCount = 34;

}  // namespace judged

/// Returns the stable upper-case name, for example "BIT_MISMATCH".
std::string_view name_of(FindingCode code);
std::ostream& operator<<(std::ostream& out, FindingCode code);
/// Returns the code with that name, or nothing if there is none. Finds the codes of Errors as well
/// as those that only judges use.
std::optional<FindingCode> finding_code_named(std::string_view name);

}  // namespace reprise
