// Each code of a judge is found by name in a small case that is wrong in that way. A verdict that
// fails by another code does not count: so a judge that is silenced turns its row red, although
// another one still objects.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "driver/language/catalogue.hpp"
#include "driver/runs/run.hpp"
#include "properties/ruling_code.hpp"

namespace reprise::driver::rulings_test {
namespace {

struct Case {
  RulingCode code;
  std::string_view mutant;
  std::string_view scenario;  ///< its first row
};

constexpr std::array kCases = {
    Case{judged::kBitMismatch, "dtype-cast-on-load", "placements/whole-optimizer"},
    Case{judged::kShiftedBytes, "bucket-padding-offset/pad-zeros", "placements/buckets-to-tensors"},
    Case{judged::kLostObject, "mimo-optimizer-load-skipped", "mimo/encoder-and-language"},
    Case{judged::kTrajectoryDivergence, "rerun-batch-read-twice", "rerun/persistent"},
    Case{judged::kStaleBytes, "ipc-pointer-stale", "async/reallocated"},
    Case{judged::kTornSnapshot, "cpu-tensor-aliased", "async/trains-on"},
    Case{judged::kRngStreamCollapse, "dp-cp-group-source/stash/unchecked",
         "groups/metadata-stripped"},
    Case{judged::kRngDrift, "rerun-rng-not-restored", "rerun/large-gradients"},
    Case{judged::kLastGoodDeleted, "retention-counts-damaged", "commit/damaged-counts-not"},
    Case{judged::kCommitMissing, "last-save-killed", "async/fault-save-killed"},
    Case{judged::kMixedGeneration, "payload-of-another-save-kept", "commit/leftovers"},
    Case{judged::kDataStreamSkip, "rerun-batch-read-twice", "rerun/persistent"},
    Case{judged::kRestartLoop, "rerun-restart-loop", "rerun/guard"},
    Case{judged::kVerdictDisagreement, "agreed-by-two/kept-structure",
         "agree/kept-structure-of-late-ranks"},
    Case{judged::kMemPeakExceeded, "empty-shard-materialised", "placements/empty-rank"},
    Case{judged::kReadTwice, "load-read-by-each", "reads/verified"},
    Case{judged::kScheduleDrift, "schedule-counted-twice", "mimo/two-loads"},
    Case{judged::kFalseReplica, "expert-local-number", "placements/own-experts"},
    Case{judged::kKeysetAsymmetry, "lazy-state-template", "placements/tp2dp2-to-tp4"},
    Case{judged::kProtocol, "store-later-writer-cleared", "store/other-writer"},
    Case{passed_on::kStaleDerived, "bucket-padding-offset", "placements/buckets-to-tensors"},
    Case{Code::kTrackerDangling, "finalize-reads-live-step", "async/trains-on"},
    Case{passed_on::kIllegalStatePersisted, "rerun-inplace-checkpoint", "rerun/transient"},
    Case{Code::kCommonStateDiverges, "empty-group-step", "placements/dense-stage"},
    Case{Code::kStalePlan, "plan-cache-shared-key", "cache/two-kinds"},
};

class EachRuling : public testing::TestWithParam<Case> {};

/// Some row of the scenario's file must show it.
TEST_P(EachRuling, is_found_by_name) {
  const Case& one = GetParam();
  const std::string file =
      std::string(REPRISE_SOURCE_DIR "/scenarios/") + std::string(one.scenario) + ".yaml";
  std::string others;
  for (const auto& scenario : read_catalogue({.paths = {file}})) {
    const ScenarioRun run =
        run_watched(scenario, LaneKind::kSim, {.mutant = std::string(one.mutant)});
    const std::string code(name_of(one.code));
    // A ruling on all lives together stands in the verdict alone.
    if (run.codes.contains(code) || run.result.code == code) return;
    for (const auto& other : run.codes) others += " " + other;
  }
  ADD_FAILURE() << name_of(one.code) << " was not found; there were only:" << others;
}

INSTANTIATE_TEST_SUITE_P(Judges, EachRuling, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& row) {
                           return std::string(name_of(row.param.code));
                         });

/// Codes that no mutant of the job brings, and where their own tests are.
constexpr std::array kElsewhere = {
    judged::kWrongOwner,          // properties: state_judge
    judged::kZeroFill,            // properties: state_judge
    judged::kNotFilled,           // properties: unsettled
    judged::kReplicaMismatch,     // properties: derived
    judged::kPermutedShards,      // properties: state_judge
    judged::kPermutedComponents,  // properties: state_judge
    judged::kOracleVacuous,       // Run, Verdict
    judged::kRetentionExceeded,   // StoreJudge
    judged::kContentDiffers,      // diff
    judged::kNotDeterministic,    // Canaries
    judged::kLanesDisagree,       // Determinism
    judged::kMutantSurvived,      // Mutants
    judged::kValidatorVacuous,    // Mutants
};

TEST(Rulings, each_code_of_a_judge_has_a_case) {
  for (std::uint32_t i = 0; i < judged::kCount; ++i) {
    const RulingCode code{judged::kFirst + i};
    const bool here = std::any_of(kCases.begin(), kCases.end(),
                                  [code](const Case& one) { return one.code == code; });
    const bool elsewhere =
        std::find(kElsewhere.begin(), kElsewhere.end(), code) != kElsewhere.end();
    EXPECT_NE(here, elsewhere) << name_of(code);
  }
}

}  // namespace
}  // namespace reprise::driver::rulings_test
