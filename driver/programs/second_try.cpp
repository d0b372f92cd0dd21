#include "driver/programs/second_try.hpp"

namespace reprise::driver {

reports::ScenarioResult with_second_try(const ProgramTry& first, reports::ScenarioResult second) {
  const auto& earlier = first.result;
  second.earlier_tries.push_back(
      {.code = earlier.code, .reason = earlier.reason, .seconds = earlier.seconds});
  if (second.verdict != reports::Verdict::kPass) return second;
  if (first.progressing) {
    if (second.diagnosis.empty()) second.diagnosis = "passed on its second try";
    return second;
  }
  second.verdict = reports::Verdict::kInconclusive;
  second.code = earlier.code;
  second.reason = "passed on its second try, and may hang at times: " + earlier.reason;
  second.failure = earlier.failure;
  if (second.failure) second.failure->cause = second.reason;
  return second;
}

}  // namespace reprise::driver
