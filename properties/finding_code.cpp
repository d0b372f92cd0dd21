#include "properties/finding_code.hpp"

#include <array>

namespace reprise {
namespace {

struct JudgedName {
  FindingCode code;
  std::string_view text;
};

// In the order of the codes' numbers.
constexpr std::array kJudgedNames = {
    JudgedName{judged::kBitMismatch, "BIT_MISMATCH"},
    JudgedName{judged::kWrongOwner, "WRONG_OWNER"},
    JudgedName{judged::kShiftedBytes, "SHIFTED_BYTES"},
    JudgedName{judged::kZeroFill, "ZERO_FILL"},
    JudgedName{judged::kNotFilled, "NOT_FILLED"},
    JudgedName{judged::kReplicaMismatch, "REPLICA_MISMATCH"},
    JudgedName{judged::kLostObject, "LOST_OBJECT"},
    JudgedName{judged::kTrajectoryDivergence, "TRAJECTORY_DIVERGENCE"},
    JudgedName{judged::kOracleVacuous, "ORACLE_VACUOUS"},
    JudgedName{judged::kPermutedShards, "PERMUTED_SHARDS"},
    JudgedName{judged::kPermutedComponents, "PERMUTED_COMPONENTS"},
    JudgedName{judged::kStaleBytes, "STALE_BYTES"},
    JudgedName{judged::kTornSnapshot, "TORN_SNAPSHOT"},
    JudgedName{judged::kRngStreamCollapse, "RNG_STREAM_COLLAPSE"},
    JudgedName{judged::kRngDrift, "RNG_DRIFT"},
    JudgedName{judged::kLastGoodDeleted, "LAST_GOOD_DELETED"},
    JudgedName{judged::kCommitMissing, "COMMIT_MISSING"},
    JudgedName{judged::kMixedGeneration, "MIXED_GENERATION"},
    JudgedName{judged::kDataStreamSkip, "DATA_STREAM_SKIP"},
    JudgedName{judged::kRestartLoop, "RESTART_LOOP"},
    JudgedName{judged::kVerdictDisagreement, "VERDICT_DISAGREEMENT"},
    JudgedName{judged::kMemPeakExceeded, "MEM_PEAK_EXCEEDED"},
    JudgedName{judged::kRetentionExceeded, "RETENTION_EXCEEDED"},
    JudgedName{judged::kReadTwice, "READ_TWICE"},
    JudgedName{judged::kScheduleDrift, "SCHEDULE_DRIFT"},
    JudgedName{judged::kContentDiffers, "CONTENT_DIFFERS"},
    JudgedName{judged::kNotDeterministic, "NOT_DETERMINISTIC"},
    JudgedName{judged::kLanesDisagree, "LANES_DISAGREE"},
    JudgedName{judged::kMutantSurvived, "MUTANT_SURVIVED"},
    JudgedName{judged::kValidatorVacuous, "VALIDATOR_VACUOUS"},
    JudgedName{judged::kFalseReplica, "FALSE_REPLICA"},
    JudgedName{judged::kKeysetAsymmetry, "KEYSET_ASYMMETRY"},
    JudgedName{judged::kProtocol, "PROTOCOL"},
    JudgedName{judged::kFlaky, "FLAKY"},
};

constexpr bool is_in_order() {
  for (std::uint32_t i = 0; i < kJudgedNames.size(); ++i) {
    if (kJudgedNames[i].code.number() != judged::kFirst + i) return false;
  }
  return true;
}
static_assert(kJudgedNames.size() == judged::kCount && is_in_order());

}  // namespace

std::string_view name_of(FindingCode code) {
  if (code.number() < judged::kFirst) return name_of(static_cast<Code>(code.number()));
  const std::size_t index = code.number() - judged::kFirst;
  return index < kJudgedNames.size() ? kJudgedNames[index].text : "UNKNOWN";
}

std::ostream& operator<<(std::ostream& out, FindingCode code) { return out << name_of(code); }

std::optional<FindingCode> finding_code_named(std::string_view name) {
  for (const auto& [code, known] : kJudgedNames) {
    if (known == name) return code;
  }
  if (const auto code = code_named(name)) return *code;
  return std::nullopt;
}

}  // namespace reprise
