#include "reports/report.hpp"

#include <algorithm>
#include <array>

#include "properties/finding_code.hpp"
#include "reprise/error.hpp"

namespace reprise::reports {
namespace {

Verdict verdict_of(const Coverage& coverage) {
  if (has_findings(coverage)) return Verdict::kFail;
  return flaws_of(coverage).empty() ? Verdict::kPass : Verdict::kInconclusive;
}

Verdict verdict_of(const Exhaustive& exhaustive) {
  if (is_wrong(exhaustive)) return Verdict::kFail;
  return flaws_of(exhaustive).empty() ? Verdict::kPass : Verdict::kInconclusive;
}

Verdict verdict_of(const Matrix& matrix) {
  if (has_survivor(matrix)) return Verdict::kFail;
  return flaws_of(matrix).empty() ? Verdict::kPass : Verdict::kInconclusive;
}

Verdict verdict_of(const MutantResult& mutant) {
  return mutant.caught ? Verdict::kPass : Verdict::kFail;
}

/// Returns the worst verdict: fail, then inconclusive, then pass.
Verdict worst_of(const std::vector<Verdict>& verdicts) {
  for (const auto verdict : {Verdict::kFail, Verdict::kInconclusive, Verdict::kPass}) {
    if (std::find(verdicts.begin(), verdicts.end(), verdict) != verdicts.end()) return verdict;
  }
  return Verdict::kNotRun;
}

}  // namespace

Words words_of(Verdict) {
  static constexpr std::array<std::string_view, 4> kWords = {"pass", "fail", "inconclusive",
                                                             "not_run"};
  return {"a verdict", "verdicts", kWords};
}

Words words_of(LifeOutcome) {
  static constexpr std::array<std::string_view, 6> kWords = {"ran",     "continued", "fell_back",
                                                             "refused", "cut_short", "failed"};
  return {"an outcome of a life", "outcomes", kWords};
}

Words words_of(ReportLane) {
  static constexpr std::array<std::string_view, 6> kWords = {"files",   "gpu", "mpi",
                                                             "program", "sim", "watch"};
  return {"a lane", "lanes", kWords};
}

std::span<const std::string_view> generation_states() {
  static constexpr std::array<std::string_view, 5> kWords = {"kept", "pruned", "replaced",
                                                             "damaged", "unfinished"};
  return kWords;
}

bool runs_programs(ReportLane lane) {
  return lane == ReportLane::kProgram || lane == ReportLane::kWatch;
}

bool is_unreadable(const ScenarioResult& result) {
  return result.verdict == Verdict::kNotRun && !result.code.empty();
}

std::uint64_t runs_doubled(const Report& report) {
  return static_cast<std::uint64_t>(
      std::ranges::count(report.scenarios, true, &ScenarioResult::doubled));
}

std::uint64_t determinism_mismatches(const Report& report) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(report.scenarios, [](const ScenarioResult& result) {
        return result.doubled && (result.code == reprise::name_of(judged::kNotDeterministic) ||
                                  result.code == reprise::name_of(judged::kLanesDisagree));
      }));
}

Verdict overall(const std::vector<ScenarioResult>& scenarios) {
  std::vector<Verdict> verdicts;
  for (const auto& result : scenarios) verdicts.push_back(result.verdict);
  return worst_of(verdicts);
}

Verdict overall(const Report& report) {
  std::vector<Verdict> verdicts = {overall(report.scenarios)};
  for (const auto& property : report.properties) verdicts.push_back(property.verdict);
  for (const auto& mutant : report.mutants) verdicts.push_back(verdict_of(mutant));
  if (report.matrix) verdicts.push_back(verdict_of(*report.matrix));
  for (const auto& tried : report.exhaustive) verdicts.push_back(verdict_of(tried));
  if (report.coverage) verdicts.push_back(verdict_of(*report.coverage));
  if (determinism_mismatches(report) != 0) verdicts.push_back(Verdict::kFail);
  const bool unread = std::any_of(report.scenarios.begin(), report.scenarios.end(), is_unreadable);
  if (report.interrupted || unread) verdicts.push_back(Verdict::kInconclusive);
  return worst_of(verdicts);
}

MutantsFinding judge_mutants(const std::vector<MutantResult>& mutants) {
  std::string survivors;
  std::size_t caught = 0;
  for (const auto& mutant : mutants) {
    if (mutant.caught) ++caught;
    if (!mutant.caught) survivors += (survivors.empty() ? "" : ", ") + mutant.name;
  }
  if (survivors.empty()) return {};
  if (caught == 0) {
    return {
        std::string(reprise::name_of(judged::kValidatorVacuous)),
        "no mutant was caught, so nothing shows that the judges can fail; survivors: " + survivors};
  }
  return {std::string(reprise::name_of(judged::kMutantSurvived)),
          "not caught by any scenario or property: " + survivors};
}

}  // namespace reprise::reports
