// A verdict that fails by the code of another judge does not count: a case must come out with its
// code. tests/silence sees that its judge alone states it.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/driver/canaries/finding_case.hpp"

namespace reprise::driver::findings_test {
namespace {

using test::Codes;
using test::FindingCase;

const std::vector<FindingCase>& cases() {
  static const std::vector<FindingCase> all = [] {
    std::vector<FindingCase> joined;
    for (auto part : {test::cases_of_states(), test::cases_of_lives(), test::cases_of_mutants()}) {
      joined.insert(joined.end(), part.begin(), part.end());
    }
    return joined;
  }();
  return all;
}

std::string text_of(const Codes& codes) {
  std::string text;
  for (const auto& code : codes) text += " " + code;
  return text;
}

class EachFinding : public testing::TestWithParam<FindingCase> {};

TEST_P(EachFinding, is_found_by_name) {
  const Codes found = GetParam().codes();
  EXPECT_TRUE(found.contains(std::string(name_of(GetParam().code))))
      << "there were only:" << text_of(found);
}

INSTANTIATE_TEST_SUITE_P(Judges, EachFinding, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<FindingCase>& row) {
                           return std::string(row.param.judge) + "_" +
                                  std::string(name_of(row.param.code)) + "_" +
                                  std::to_string(row.index);
                         });

/// Codes that no judge states, but what compares runs, or counts mutants.
constexpr std::array kOfRuns = {
    judged::kNotDeterministic,  // Canaries
    judged::kLanesDisagree,     // Determinism
    judged::kMutantSurvived,    // Mutants
    judged::kValidatorVacuous,  // Mutants
    judged::kFlaky,             // Retries
};

TEST(Findings, each_code_that_only_judges_use_has_a_case) {
  for (std::uint32_t i = 0; i < judged::kCount; ++i) {
    const FindingCode code{judged::kFirst + i};
    const bool here = std::any_of(cases().begin(), cases().end(),
                                  [code](const FindingCase& one) { return one.code == code; });
    const bool elsewhere = std::find(kOfRuns.begin(), kOfRuns.end(), code) != kOfRuns.end();
    EXPECT_NE(here, elsewhere) << name_of(code);
  }
}

}  // namespace
}  // namespace reprise::driver::findings_test
