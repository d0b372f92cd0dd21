// Tests that the stages of tools/ci.sh are those of the page and fit into the time that CI has, and
// that they leave out only cases that there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/layers/source_tree.hpp"

namespace reprise::layers {
namespace {

constexpr int kWarmSeconds = 1800;
constexpr int kColdSeconds = 3200;

const std::string& text_of(const std::string& path) {
  const auto found = std::find_if(tree().begin(), tree().end(),
                                  [&](const SourceFile& file) { return file.path == path; });
  if (found == tree().end()) throw std::runtime_error("no file " + path);
  return found->text;
}

/// Returns the lines of a list of tools/ci.sh, such as `stages`, without quotes.
std::vector<std::string> list_in_ci(const std::string& name) {
  std::istringstream lines(text_of("tools/ci.sh"));
  std::vector<std::string> list;
  bool in_it = false;
  for (std::string line; std::getline(lines, line);) {
    if (in_it && line == ")") break;
    if (in_it) list.push_back(line.substr(line.find('"') + 1));
    in_it = in_it || line == "readonly " + name + "=(";
  }
  return list;
}

struct Stage {
  std::string name;
  int limit = 0;
};

std::vector<Stage> stages(const std::string& list) {
  std::vector<Stage> all;
  for (const std::string& line : list_in_ci(list)) {
    Stage stage;
    std::istringstream(line) >> stage.name >> stage.limit;
    all.push_back(stage);
  }
  return all;
}

struct Usual {
  int warm = 0;
  int cold = 0;
};

/// Reads "| release | 400 | 700 | what it is |" from docs/building.md.
std::map<std::string, Usual> usual_times() {
  std::istringstream lines(text_of("docs/building.md"));
  std::map<std::string, Usual> times;
  for (std::string line; std::getline(lines, line);) {
    std::replace(line.begin(), line.end(), '|', ' ');
    std::istringstream cells(line);
    std::string name;
    Usual usual;
    if (cells >> name >> usual.warm >> usual.cold) times[name] = usual;
  }
  return times;
}

TEST(Stages, have_times_on_the_page_that_fit_into_what_ci_has) {
  const auto all = stages("stages");
  ASSERT_GT(all.size(), 10U);
  auto times = usual_times();
  Usual sum;
  for (const Stage& stage : all) {
    ASSERT_TRUE(times.contains(stage.name)) << stage.name << " has no times in docs/building.md";
    const Usual usual = times[stage.name];
    times.erase(stage.name);
    sum.warm += usual.warm, sum.cold += usual.cold;
    EXPECT_LE(usual.warm, usual.cold) << stage.name;
    EXPECT_GE(stage.limit, usual.cold * 3 / 2) << stage.name << " is stopped on a slower machine";
  }
  EXPECT_LE(sum.warm, kWarmSeconds);
  EXPECT_LE(sum.cold, kColdSeconds);
  EXPECT_TRUE(times.empty()) << times.begin()->first << " is no stage";
}

TEST(Stages, that_ci_cuts_short_are_whole_in_the_whole_run) {
  std::vector<std::string> whole;
  for (const Stage& stage : stages("whole_stages")) whole.push_back(stage.name);
  for (const char* name : {"release_all", "asan_all", "mpi_all", "fuzz_long", "headers", "tidy"}) {
    EXPECT_EQ(std::count(whole.begin(), whole.end(), name), 1) << name;
  }
  const std::string& ci = text_of("tools/ci.sh");
  EXPECT_NE(ci.find("stage_release_all() { build_for_tests release && run_tests release; }"),
            std::string::npos)
      << "it leaves out nothing";
  EXPECT_NE(ci.find("stage_asan_all() { build_for_tests asan && run_tests asan; }"),
            std::string::npos)
      << "it leaves out nothing";
}

/// Returns the parts of a variable of tools/ci.sh between colons.
std::vector<std::string> patterns_of(const std::string& name) {
  const std::string& ci = text_of("tools/ci.sh");
  const std::string begin = "readonly " + name + "='";
  const auto at = ci.find(begin);
  if (at == std::string::npos) throw std::runtime_error("no " + name);
  std::istringstream parts(
      ci.substr(at + begin.size(), ci.find('\'', at + begin.size()) - at - begin.size()));
  std::vector<std::string> patterns;
  for (std::string part; std::getline(parts, part, ':');) patterns.push_back(part);
  return patterns;
}

/// True if a test of these folders has the names that the pattern begins with: "A/Suite.name*/1?".
bool is_there(const std::string& pattern, const std::vector<std::string>& folders) {
  const auto dot = pattern.find('.');
  const std::string suites = pattern.substr(0, dot);
  const std::string suite =
      suites.substr(suites.find('/') == std::string::npos ? 0 : suites.find('/') + 1);
  const std::string rest = pattern.substr(dot + 1);
  const std::string name = rest.substr(0, rest.find_first_of("*?/"));
  return std::any_of(tree().begin(), tree().end(), [&](const SourceFile& file) {
    if (std::find(folders.begin(), folders.end(), folder_of(file.path)) == folders.end())
      return false;
    const auto at = file.text.find("(" + suite + ",");
    return at != std::string::npos && (name.empty() || file.text.find(name) != std::string::npos);
  });
}

/// Returns the folders of the executables that tests/NAME.txt lists.
std::vector<std::string> folders_in(const std::string& name) {
  std::istringstream lines(text_of("tests/" + name + ".txt"));
  std::vector<std::string> listed, folders;
  for (std::string line; std::getline(lines, line);) listed.push_back(line);
  for (const SourceFile& file : tree()) {
    std::string target = folder_of(file.path);
    if (!target.starts_with("tests/")) continue;
    std::replace(target.begin(), target.end(), '/', '_');
    target = "test_" + target.substr(6);
    if (std::find(listed.begin(), listed.end(), target) != listed.end()) {
      folders.push_back(folder_of(file.path));
    }
  }
  return folders;
}

TEST(Stages, leave_out_only_cases_that_there_are) {
  std::vector<std::string> every;
  for (const SourceFile& file : tree()) {
    if (file.path.starts_with("tests/")) every.push_back(folder_of(file.path));
  }
  for (const std::string& pattern : patterns_of("release_left_out")) {
    EXPECT_TRUE(is_there(pattern, every)) << pattern;
  }
  const auto sanitized = folders_in("asan");
  ASSERT_GT(sanitized.size(), 10U);
  for (const std::string& pattern : patterns_of("asan_left_out")) {
    EXPECT_TRUE(is_there(pattern, sanitized)) << pattern << " is in no test of tests/asan.txt";
  }
  EXPECT_FALSE(is_there("NoSuite.*", every));
  EXPECT_FALSE(is_there("Stages.no_such_case_is_there" + std::string("_at_all*"), every));
}

}  // namespace
}  // namespace reprise::layers
