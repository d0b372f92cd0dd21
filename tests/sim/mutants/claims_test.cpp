// Tests that the scenarios, tests and mutants named in docs/claims.md exist, that the tests in each
// row catch the mutants of that row, and that no mutant is missing from the page.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sim/mutants/mutants.hpp"

namespace reprise::sim::claims_test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kRoot = REPRISE_SOURCE_DIR;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// One row of a table on the page.
struct Claim {
  std::string text;
  std::vector<std::string> shown_by;
  std::vector<std::string> mutants;
};

/// Returns the words between backquotes.
std::vector<std::string> names_in(const std::string& cell) {
  static const std::regex kName("`([^`]+)`");
  std::vector<std::string> names;
  for (std::sregex_iterator at(cell.begin(), cell.end(), kName), end; at != end; ++at) {
    names.push_back((*at)[1]);
  }
  return names;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(cell);
  return cells;
}

/// Returns the rows of all tables, without the header rows.
std::vector<Claim> claims_in(const std::string& page) {
  std::vector<Claim> claims;
  std::istringstream in(page);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("| ") || line.starts_with("| claim |")) continue;
    const auto cells = cells_of(line);
    if (cells.size() != 3) {
      ADD_FAILURE() << "a line of a table must have three cells: " << line;
      continue;
    }
    claims.push_back({cells[0], names_in(cells[1]), names_in(cells[2])});
  }
  return claims;
}

/// Maps the name of every test in the tree, "Suite.name", to the text of the test's file.
std::map<std::string, std::string> tests_of_the_tree() {
  static const std::regex kTest(R"(\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\))");
  std::map<std::string, std::string> tests;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot + "/tests")) {
    if (!entry.path().string().ends_with("_test.cpp")) continue;
    const std::string text = text_of(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), kTest), end; at != end; ++at) {
      tests.emplace((*at)[1].str() + "." + (*at)[2].str(), text);
    }
  }
  return tests;
}

/// Returns the text in which a row's mutants must be named. For a scenario, this is its list of
/// mutants; for a test, it is the test's file. Empty if neither exists.
std::string text_of_evidence(const std::string& name,
                             const std::map<std::string, std::string>& tests) {
  if (const auto test = tests.find(name); test != tests.end()) return test->second;
  const fs::path file = kRoot + "/scenarios/" + name + ".yaml";
  if (name.find('/') == std::string::npos || !fs::exists(file)) return "";
  const std::string text = text_of(file);
  return "caught:" + text.substr(std::min(text.find("\ncaught:"), text.size()));
}

/// True if the text contains the whole name of the mutant; "a/b" does not contain "a".
bool names(const std::string& text, std::string_view mutant) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '/';
  };
  for (auto at = text.find(mutant); at != std::string::npos; at = text.find(mutant, at + 1)) {
    const auto after = at + mutant.size();
    const bool begins = at == 0 || !is_part(text[at - 1]);
    if (begins && (after == text.size() || !is_part(text[after]))) return true;
  }
  return false;
}

/// Returns the page's problems, one sentence each.
std::vector<std::string> flaws_in(const std::string& page,
                                  const std::map<std::string, std::string>& tests) {
  std::set<std::string> known;
  for (const auto& mutant : mutants()) known.emplace(mutant.name);
  std::set<std::string> unnamed = known;
  std::vector<std::string> flaws;
  std::set<std::string> claims;
  for (const auto& claim : claims_in(page)) {
    const auto flaw = [&](const std::string& what) { flaws.push_back(claim.text + ": " + what); };
    if (!claims.insert(claim.text).second) flaw("stands there twice");
    if (claim.shown_by.empty()) flaw("nothing shows it");
    std::vector<std::string> evidence;
    for (const auto& name : claim.shown_by) {
      evidence.push_back(text_of_evidence(name, tests));
      if (evidence.back().empty()) flaw("there is no scenario and no test " + name);
    }
    for (const auto& mutant : claim.mutants) {
      unnamed.erase(mutant);
      if (!known.contains(mutant)) flaw("there is no mutant " + mutant);
      const bool caught = std::any_of(evidence.begin(), evidence.end(),
                                      [&](const auto& text) { return names(text, mutant); });
      if (!caught) flaw("nothing on its line names the mutant " + mutant);
    }
  }
  for (const auto& mutant : unnamed) flaws.push_back("the mutant " + mutant + " has no line");
  return flaws;
}

TEST(Claims, name_what_there_is_and_leave_no_mutant_out) {
  const std::string page = text_of(kRoot + "/docs/claims.md");
  EXPECT_GT(claims_in(page).size(), 80U);
  for (const auto& flaw : flaws_in(page, tests_of_the_tree())) ADD_FAILURE() << flaw;
}

TEST(Claims, unknown_names_and_mutants_that_no_row_catches_are_seen) {
  const auto tests = tests_of_the_tree();
  const auto flaws_of = [&](const std::string& row) {
    auto flaws = flaws_in("| claim | shown by | mutants |\n|---|---|---|\n" + row, tests);
    std::erase_if(flaws, [](const auto& flaw) { return flaw.ends_with("has no line"); });
    return flaws;
  };
  EXPECT_THAT(flaws_of("| a | `placements/ep2` | `expert-marked-replicate` |\n"), IsEmpty());
  EXPECT_THAT(flaws_of("| a | `Gate.another_commit_or_a_changed_tree` | |\n"), IsEmpty());
  EXPECT_THAT(flaws_of("| a | `placements/ep3` | |\n"),
              ElementsAre(HasSubstr("no scenario and no test placements/ep3")));
  EXPECT_THAT(flaws_of("| a | `Gate.opens` | |\n"), ElementsAre(HasSubstr("no test Gate.opens")));
  EXPECT_THAT(flaws_of("| a | | |\n"), ElementsAre(HasSubstr("nothing shows it")));
  EXPECT_THAT(flaws_of("| a | `placements/ep2` | `expert-marked` |\n"),
              Contains(HasSubstr("there is no mutant expert-marked")));
  EXPECT_THAT(flaws_of("| a | `placements/ep2` | `global-groups` |\n"),
              ElementsAre(HasSubstr("nothing on its line names the mutant global-groups")));
  EXPECT_THAT(flaws_of("| a | `placements/ep2` | |\n| a | `placements/ep4` | |\n"),
              ElementsAre(HasSubstr("stands there twice")));
  EXPECT_THAT(flaws_in("", tests), Contains("the mutant expert-marked-replicate has no line"));
}

}  // namespace
}  // namespace reprise::sim::claims_test
