#include <array>

#include "core/base/codes.hpp"
#include "driver/language/catalogue.hpp"
#include "driver/runs/property.hpp"
#include "driver/runs/run.hpp"
#include "tests/driver/canaries/finding_case.hpp"

namespace reprise::driver::test {
namespace {

struct Row {
  std::string_view judge;
  FindingCode code;
  std::string_view mutant;
  std::string_view scenario;  ///< its file in the catalogue
};

constexpr std::array kRows = {
    Row{"derived", passed_on::kStaleDerived, "bucket-padding-offset/pad-zeros",
        "regress/buckets-to-boxes"},
    Row{"rank_judge", judged::kDataStreamSkip, "rerun-batch-read-twice/never", "rerun/persistent"},
    Row{"rank_judge", judged::kLostObject, "per-rank-list-in-common", "mimo/encoder-and-language"},
    Row{"rank_judge", judged::kMemPeakExceeded, "load-peak", "faults/memory"},
    Row{"rank_judge", Code::kShapeDrift, "ep-placement-from-param-mesh", "placements/ep2"},
    Row{"rank_judge", judged::kStaleBytes, "tracker-of-leader-alone",
        "mimo/tracker-of-leader-behind"},
    Row{"rank_judge", judged::kTrajectoryDivergence, "layout-for-wrong-group",
        "placements/bucket-instances"},
    Row{"protocol_trace", judged::kProtocol, "store-shown-before-content", "store/content-first"},
    Row{"rank_main", judged::kProtocol, "rerun-inplace-checkpoint/unguarded", "rerun/transient"},
    Row{"restart_loop", judged::kRestartLoop, "rerun-restart-loop", "rerun/guard"},
    Row{"rng_judge", judged::kRngDrift, "rerun-precedence-swapped", "rerun/spike-beats-fault"},
    Row{"rng_judge", judged::kRngStreamCollapse, "own-metadata-of-first-rank",
        "agree/own-metadata"},
    Row{"schedule_judge", judged::kScheduleDrift, "mimo-step-consensus", "mimo/overflow-alone"},
    Row{"stored_verbs", judged::kVerdictDisagreement, "diff-first-chunk-alone",
        "verbs/other-chunk"},
    Row{"sim_lane", judged::kProtocol, "store-later-writer-cleared", "store/other-writer"},
};

/// Returns the first row of a file of the catalogue.
Scenario scenario_in(std::string_view file) {
  const std::string path =
      std::string(REPRISE_SOURCE_DIR "/scenarios/") + std::string(file) + ".yaml";
  return read_catalogue({.paths = {path}}).front();
}

Codes run(const Row& row) {
  const ScenarioRun run =
      run_watched(scenario_in(row.scenario), LaneKind::kSim, {.mutant = std::string(row.mutant)});
  Codes codes(run.codes.begin(), run.codes.end());
  codes.insert(run.result.code);  // a finding on all lives together is in the verdict alone
  return codes;
}

/// Returns what a property says of a job that stores other tensors under another layout.
Codes stored_otherwise() {
  const auto found = failure_of(property_named("stored-alike"), scenario_in("placements/ep2"),
                                {.mutant = "fused-gate-split"});
  return found ? Codes{found->code} : Codes{};
}

}  // namespace

std::vector<FindingCase> cases_of_mutants() {
  std::vector<FindingCase> cases = {{"property", judged::kContentDiffers, stored_otherwise}};
  for (const Row& row : kRows) {
    cases.push_back({row.judge, row.code, [&row] { return run(row); }});
  }
  return cases;
}

}  // namespace reprise::driver::test
