#include "driver/witness/same_steps.hpp"

#include <algorithm>
#include <set>

#include "driver/witness/course_judge.hpp"
#include "driver/witness/sample_judge.hpp"

namespace reprise::driver {
namespace {

/// Returns what differs as well in two runs if this differs.
std::set<std::string> dependent_on(const std::string& stream) {
  std::set<std::string> streams = {"loss", "norm", "scale", "end"};
  if (stream == "samples") streams.insert("samples");
  if (stream == "lr") streams.insert("lr");
  return streams;
}

/// Makes findings inconclusive that depend on what differs.
void excuse(const std::set<std::string>& unlike, Findings& findings) {
  for (auto& finding : findings) {
    if (!finding.fails() || finding.stream.empty() || !unlike.contains(finding.stream)) continue;
    finding.severity = Severity::kInconclusive;
    finding.text += "; not judged, because two runs of the same steps differ";
  }
}

void make_cause(Finding& finding, SourceLine line = SourceLine::here()) {
  if (!may_state(line, judged::kNotDeterministic)) return;
  finding.code = judged::kNotDeterministic;
  finding.severity = Severity::kInconclusive;
  finding.text = "two runs of the same steps differ: " + finding.text;
}

}  // namespace

void settle_same_steps(Findings& findings) {
  std::set<std::string> unlike;
  for (auto& finding : findings) {
    if (!finding.untouched) continue;
    unlike.merge(dependent_on(finding.stream));
    make_cause(finding);
    finding.text += "; until then both had the same state and had saved nothing";
  }
  excuse(unlike, findings);
  std::stable_partition(findings.begin(), findings.end(),
                        [](const Finding& finding) { return finding.untouched; });
}

void settle_other_course(Findings differences, Findings& findings) {
  std::set<std::string> unlike;
  for (auto& difference : differences) {
    unlike.merge(dependent_on(difference.stream));
    make_cause(difference);
  }
  excuse(unlike, findings);
  differences.append(findings);
  findings = std::move(differences);
}

Findings other_course(const LifeEvidence& first, const LifeEvidence& second) {
  Findings found;
  judge_samples({first}, second, found);
  judge_course(0, first, {.life = second, .called = "a second uninterrupted run"}, found);
  Findings differences;
  for (const auto& finding : found) {
    if (!finding.stream.empty() && finding.fails()) differences.push_back(finding);
  }
  return differences;
}

}  // namespace reprise::driver
