// Each line at which a judge states a code is silenced, one at a time: a test must turn red. A
// judge that states one code at several lines would otherwise lose one of them unseen.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "tests/contracts/sanitized.hpp"
#include "tests/silence/judge_source.hpp"
#include "tests/silence/trials.hpp"

namespace reprise::silence {
namespace {

class EachStatement : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (REPRISE_SANITIZED == 0) heard_ = hear(failed_);
  }
  void SetUp() override {
    if (REPRISE_SANITIZED != 0) GTEST_SKIP() << "this says nothing more under a sanitizer";
    ASSERT_TRUE(failed_.empty()) << failed_.front() << " fails with nothing silenced";
  }

  /// True if a test states this code there; if `code` is null, any code.
  static bool is_heard(const Statement& statement, const FindingCode* code) {
    for (int line = statement.first; line <= statement.last; ++line) {
      const Stated at = statement.file + ':' + std::to_string(line) + ' ';
      const Stated all = at + (code == nullptr ? "" : std::string(name_of(*code)));
      const auto found = heard_.lower_bound(all);
      if (found == heard_.end()) continue;
      if (code == nullptr ? found->first.starts_with(at) : found->first == all) return true;
    }
    return false;
  }
  static bool is_heard(const std::string& file, FindingCode code) {
    return std::any_of(heard_.begin(), heard_.end(), [&](const auto& entry) {
      return entry.first.starts_with(file + ':') &&
             entry.first.ends_with(' ' + std::string(name_of(code)));
    });
  }

  static std::map<Stated, std::vector<JudgeTest>> heard_;
  static std::vector<std::string> failed_;
};
std::map<Stated, std::vector<JudgeTest>> EachStatement::heard_;
std::vector<std::string> EachStatement::failed_;

/// A code that a source only compares with, or hands to another judge, which states it; or what a
/// simulated world ends with, which no judge sees.
struct Other {
  std::string_view file;
  FindingCode code;
};
const std::array kOthers = {
    Other{"driver/judges/failure.cpp", Code::kInternal},
    Other{"driver/judges/holders.cpp", Code::kInternal},
    Other{"driver/exhaust/loading_world.cpp", Code::kInternal},
    Other{"driver/programs/element_mismatch.cpp", judged::kBitMismatch},
    // errors of ranks
    Other{"driver/judges/life_end.cpp", Code::kDeadline},
    Other{"driver/judges/life_end.cpp", Code::kInternal},
    Other{"driver/judges/life_end.cpp", Code::kIo},
    Other{"driver/judges/life_end.cpp", Code::kNoSpace},
    Other{"driver/judges/life_end.cpp", Code::kPeerFailed},
    Other{"driver/judges/verdict.cpp", Code::kDeadline},
    Other{"driver/judges/verdict.cpp", Code::kPeerFailed},
};

bool is_other(const std::string& file, FindingCode code) {
  return std::any_of(kOthers.begin(), kOthers.end(),
                     [&](const Other& other) { return other.file == file && other.code == code; });
}

bool is_judge(const std::string& file) {
  return file.starts_with("driver/judges/") || file.starts_with("driver/witness/") ||
         file.starts_with("properties/") || file == "driver/programs/element_mismatch.cpp";
}

TEST_F(EachStatement, is_made_by_a_test) {
  const std::string root = REPRISE_SOURCE_DIR;
  std::size_t statements = 0;
  for (const std::string& file : sources_of_judges(root)) {
    const JudgeSource source = read_judge(root, file);
    statements += source.statements.size();
    for (const Statement& one : source.statements) {
      const std::string at = file + ':' + std::to_string(one.first);
      if (one.codes.empty() && !is_heard(one, nullptr)) {
        ADD_FAILURE() << at << " is stated by no test";
      }
      for (const FindingCode code : one.codes) {
        if (is_other(file, code) || is_heard(one, &code)) continue;
        ADD_FAILURE() << at << ' ' << name_of(code) << " is stated by no test";
      }
    }
    for (const Named& named : source.named) {
      if (!is_judge(file) || is_other(file, named.code) || is_heard(file, named.code)) continue;
      ADD_FAILURE() << file << ':' << named.line << ' ' << name_of(named.code)
                    << " is stated by no test";
    }
  }
  EXPECT_GT(statements, 200U);
}

/// Returns the codes that a judge's source names. It may pass on further ones, of errors.
std::set<std::string> codes_named_in(const std::string& file) {
  std::set<std::string> codes;
  const JudgeSource source = read_judge(REPRISE_SOURCE_DIR, file);
  for (const auto& statement : source.statements) {
    for (const FindingCode code : statement.codes) codes.emplace(name_of(code));
  }
  for (const auto& named : source.named) codes.emplace(name_of(named.code));
  return codes;
}

/// Returns what to silence: each code that the judge names on its own, the others together.
std::map<Stated, std::vector<JudgeTest>> to_silence(
    const std::map<Stated, std::vector<JudgeTest>>& heard) {
  std::map<std::string, std::set<std::string>> named;
  std::map<Stated, std::vector<JudgeTest>> all;
  for (const auto& [stated, tests] : heard) {
    const std::string file = stated.substr(0, stated.find(':'));
    const auto code = stated.find(' ') + 1;
    if (!named.contains(file)) named[file] = codes_named_in(file);
    const bool own = named[file].contains(stated.substr(code));
    auto& to = all[own ? stated : stated.substr(0, code) + '*'];
    to.insert(to.end(), tests.begin(), tests.end());
  }
  return all;
}

TEST_F(EachStatement, would_be_found_if_no_test_needed_it) {
  const Stated nowhere = "driver/judges/nowhere.cpp:1 *";
  ASSERT_FALSE(heard_.empty());
  EXPECT_EQ(unneeded({{nowhere, heard_.begin()->second}}), std::vector<Stated>{nowhere});
}

TEST_F(EachStatement, turns_a_test_red_when_it_is_silenced) {
  const auto all = to_silence(heard_);
  for (const Stated& stated : unneeded(all)) {
    ADD_FAILURE() << stated << " is not stated, and no test fails; it is stated by "
                  << all.at(stated).front().name;
  }
}

}  // namespace
}  // namespace reprise::silence
