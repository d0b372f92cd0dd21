#include "reports/retries.hpp"

#include <algorithm>
#include <vector>

#include "properties/finding_code.hpp"

namespace reprise::reports {
namespace {

bool wants_retry(Verdict verdict) {
  return verdict == Verdict::kFail || verdict == Verdict::kInconclusive;
}

}  // namespace

ScenarioResult with_retries(ScenarioResult first, std::size_t retries, const OneMoreTry& again) {
  std::vector<ScenarioResult> tries = {std::move(first)};
  while (tries.size() <= retries && wants_retry(tries.back().verdict)) {
    auto next = again();
    if (!next) break;
    tries.push_back(std::move(*next));
  }
  const bool flaky = tries.size() > 1 && tries.back().verdict == Verdict::kPass;
  const auto failed =
      std::ranges::find(tries.rbegin(), tries.rend(), Verdict::kFail, &ScenarioResult::verdict);
  ScenarioResult& shown = flaky || failed == tries.rend() ? tries.back() : *failed;
  std::vector<EarlierTry> earlier;
  double seconds = 0;
  for (const auto& one : tries) {
    seconds += one.seconds;
    if (&one == &shown) continue;
    earlier.insert(earlier.end(), one.earlier_tries.begin(), one.earlier_tries.end());
    earlier.push_back({.code = one.code, .reason = one.reason, .seconds = one.seconds});
  }
  shown.earlier_tries.insert(shown.earlier_tries.begin(), earlier.begin(), earlier.end());
  shown.seconds = seconds;
  if (!flaky) return std::move(shown);
  const ScenarioResult& before = tries[tries.size() - 2];
  shown.verdict = Verdict::kInconclusive;
  shown.code = reprise::name_of(judged::kFlaky);
  shown.reason = "passed on try " + std::to_string(tries.size()) +
                 ", not before: " + name_of(before.verdict) +
                 (before.code.empty() ? "" : ", " + before.code) +
                 (before.reason.empty() ? "" : ": " + before.reason);
  shown.failure = before.failure.value_or(Failure{});
  shown.failure->cause = shown.reason;
  return std::move(shown);
}

bool is_flaky(const ScenarioResult& result) {
  return result.code == reprise::name_of(judged::kFlaky);
}

bool is_flaky_alone(const Report& report) {
  Report stable = report;
  const auto gone = std::erase_if(stable.scenarios, is_flaky);
  const bool all = stable.scenarios.empty() && !stable.interrupted;
  return gone > 0 && (all || overall(stable) == Verdict::kPass);
}

}  // namespace reprise::reports
