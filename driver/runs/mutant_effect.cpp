#include "driver/runs/mutant_effect.hpp"

#include <array>

#include "driver/runs/determinism.hpp"
#include "properties/finding_code.hpp"

namespace reprise::driver {

void require_effect(const Scenario& scenario, LaneKind lane, const LaneOptions& options,
                    reports::ScenarioResult& with) {
  if (options.mutant.empty() || lane != LaneKind::kSim) return;
  if (with.verdict != reports::Verdict::kPass || with.event_hash.empty()) return;
  LaneOptions right = options;
  right.mutant.clear();
  right.keep.clear();
  right.recorded = {};
  right.calls = {};
  const reports::ScenarioResult without = run_watched(scenario, lane, right).result;
  const bool same_events = with.event_hash == without.event_hash;
  const auto end_of = [](const reports::ScenarioResult& result) {
    Course course = course_of(result);
    course.event_hash.clear();
    return course;
  };
  const auto memory_of = [](const reports::ScenarioResult& result) {
    const auto& peak = result.peak_bytes;
    return std::array{peak.snapshot, peak.stage, peak.load, peak.empty};
  };
  if (end_of(with) != end_of(without) || memory_of(with) != memory_of(without)) return;
  with.verdict = reports::Verdict::kInconclusive;
  with.code = name_of(judged::kOracleVacuous);
  with.reason = "the mutant " + options.mutant +
                (same_events ? " changed nothing" : " did not change how the run ends");
}

}  // namespace reprise::driver
