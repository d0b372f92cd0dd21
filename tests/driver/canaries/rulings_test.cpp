// Each judge is silenced, one code at a time. A verdict that fails by the code of another judge
// does not count: a case must come out with its code, and without it once its judge is silent.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "properties/ruling_watch.hpp"
#include "tests/driver/canaries/ruling_case.hpp"

namespace reprise::driver::rulings_test {
namespace {

using test::Codes;
using test::RulingCase;

const std::vector<RulingCase>& cases() {
  static const std::vector<RulingCase> all = [] {
    std::vector<RulingCase> joined;
    for (auto part : {test::cases_of_states(), test::cases_of_lives(), test::cases_of_mutants()}) {
      joined.insert(joined.end(), part.begin(), part.end());
    }
    return joined;
  }();
  return all;
}

bool has_case(const std::string& judge, RulingCode code) {
  return std::any_of(cases().begin(), cases().end(),
                     [&](const RulingCase& one) { return one.judge == judge && one.code == code; });
}

std::string text_of(const Codes& codes) {
  std::string text;
  for (const auto& code : codes) text += " " + code;
  return text;
}

class EachRuling : public testing::TestWithParam<RulingCase> {};

TEST_P(EachRuling, is_found_by_name_and_by_its_judge_alone) {
  const RulingCase& one = GetParam();
  const std::string code(name_of(one.code));
  const StatedCode own{std::string(one.judge), one.code};
  {
    const RulingWatch watch;
    const Codes found = one.codes();
    ASSERT_TRUE(found.contains(code)) << "there were only:" << text_of(found);
    ASSERT_TRUE(watch.heard().contains(own)) << "another judge found it";
  }
  const RulingWatch silent(own);
  EXPECT_FALSE(one.codes().contains(code)) << "another judge finds it, too";
}

INSTANTIATE_TEST_SUITE_P(Judges, EachRuling, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<RulingCase>& row) {
                           return std::string(row.param.judge) + "_" +
                                  std::string(name_of(row.param.code));
                         });

/// Codes that no judge states, but what compares runs, or counts mutants.
constexpr std::array kOfRuns = {
    judged::kNotDeterministic,  // Canaries
    judged::kLanesDisagree,     // Determinism
    judged::kMutantSurvived,    // Mutants
    judged::kValidatorVacuous,  // Mutants
};

TEST(Rulings, each_code_that_only_judges_use_has_a_case) {
  for (std::uint32_t i = 0; i < judged::kCount; ++i) {
    const RulingCode code{judged::kFirst + i};
    const bool here = std::any_of(cases().begin(), cases().end(),
                                  [code](const RulingCase& one) { return one.code == code; });
    const bool elsewhere = std::find(kOfRuns.begin(), kOfRuns.end(), code) != kOfRuns.end();
    EXPECT_NE(here, elsewhere) << name_of(code);
  }
}

/// A code that a judge's source names.
struct Named {
  std::string file;  ///< without its ending
  RulingCode code;

  friend bool operator==(const Named&, const Named&) = default;
};

/// Returns "BIT_MISMATCH" for "BitMismatch".
std::string upper(const std::string& name) {
  std::string text;
  for (const char letter : name) {
    if (!text.empty() && std::isupper(static_cast<unsigned char>(letter)) != 0) text += '_';
    text += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return text;
}

std::vector<Named> codes_named_in(const std::string& folder) {
  static const std::regex kCode(R"((judged::|passed_on::|\bCode::)k([A-Z]\w*))");
  std::vector<Named> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      line.erase(std::min(line.find("//"), line.size()));
      for (std::sregex_iterator at(line.begin(), line.end(), kCode), end; at != end; ++at) {
        const auto code = ruling_code_named(upper((*at)[2]));
        if (code) all.push_back({entry.path().stem().string(), *code});
      }
    }
  }
  return all;
}

/// Codes that a source only compares with, or hands to another judge, which states them.
const std::vector<Named>& only_named() {
  static const std::vector<Named> all = {
      {"failure", Code::kInternal},
      {"holders", Code::kInternal},
      // errors of ranks
      {"life_end", Code::kDeadline},
      {"life_end", Code::kInternal},
      {"life_end", Code::kIo},
      {"life_end", Code::kNoSpace},
      {"life_end", Code::kPeerFailed},
      {"verdict", Code::kDeadline},
      {"verdict", Code::kPeerFailed},
      // distances from the cause
      {"verdict", Code::kChunkOverlap},
      {"verdict", Code::kCoverageGap},
      {"verdict", Code::kMultiWriter},
      {"verdict", Code::kNoWriter},
      {"verdict", judged::kFalseReplica},
      {"verdict", judged::kMixedGeneration},
      {"verdict", judged::kProtocol},
      {"verdict", judged::kReplicaMismatch},
      {"verdict", judged::kTrajectoryDivergence},
      // suspects, which state_judge looks at
      {"rank_judge", judged::kBitMismatch},
      {"rank_judge", judged::kTornSnapshot},
  };
  return all;
}

TEST(Rulings, each_code_that_a_judge_names_has_a_case_of_that_judge) {
  std::size_t found = 0;
  for (const char* folder : {"/driver/judges", "/properties"}) {
    for (Named named : codes_named_in(std::string(REPRISE_SOURCE_DIR) + folder)) {
      if (named.file == "ruling_code") continue;               // the list of all
      if (named.file == "origin") named.file = "state_judge";  // which asks it for the code
      ++found;
      const auto& others = only_named();
      const bool states = std::find(others.begin(), others.end(), named) == others.end();
      EXPECT_EQ(has_case(named.file, named.code), states)
          << named.file << ' ' << name_of(named.code);
    }
  }
  EXPECT_GT(found, 100U);
}

}  // namespace
}  // namespace reprise::driver::rulings_test
