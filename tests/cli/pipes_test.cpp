// A pipe in the place of a file waits for the other end, perhaps for ever. Every verb that opens a
// path which the user named refuses it at once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

const std::string kScenario = std::string(REPRISE_SOURCE_DIR) + "/scenarios/placements/ep2.yaml";

struct Row {
  const char* name;
  Words words;  ///< PIPE is the path of a pipe, DIR a directory in which each report's file is one
};

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class Pipes : public testing::TestWithParam<Row> {
 protected:
  std::string place(const std::string& name) const { return directory_.path() + "/" + name; }

  Words words() const {
    Words all = GetParam().words;
    for (auto& word : all) {
      if (word == "PIPE") word = place("pipe");
      if (word == "DIR") word = place("dir");
    }
    return all;
  }

  contracts::TemporaryDirectory directory_;
};

TEST_P(Pipes, are_refused_at_once) {
  ASSERT_EQ(::mkfifo(place("pipe").c_str(), 0600), 0);
  fs::create_directories(place("dir"));
  for (const char* name : {"report.json", "report.html", "junit.xml", "summary.md"}) {
    ASSERT_EQ(::mkfifo(place(std::string("dir/") + name).c_str(), 0600), 0);
    ASSERT_EQ(::mkfifo(place(std::string("dir/") + name + ".tmp").c_str(), 0600), 0);
  }
  const auto result = run_program(words(), {.seconds = 30});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_NE(result.err, "");
  EXPECT_TRUE(fs::is_fifo(place("pipe")));
}

INSTANTIATE_TEST_SUITE_P(
    Each, Pipes,
    testing::Values(
        Row{"run", {"run", "PIPE"}}, Row{"trace", {"run", kScenario, "--trace", "PIPE"}},
        Row{"record", {"run", kScenario, "--record", "PIPE"}},
        Row{"run_report", {"run", kScenario, "--report", "PIPE"}},
        Row{"run_reports", {"run", kScenario, "--report", "DIR"}},
        Row{"explore_report", {"search", "explore", "--cases", "1", "--report", "PIPE"}},
        Row{"explore_reports", {"search", "explore", "--cases", "1", "--report", "DIR"}},
        Row{"explore_out", {"search", "explore", "--cases", "1", "--out", "PIPE"}},
        Row{"explore_since", {"search", "explore", "--cases", "1", "--since", "DIR"}},
        Row{"mutants_json", {"mutants", kScenario, "--json", "PIPE"}},
        Row{"mutants_page", {"mutants", kScenario, "--matrix", "--page", "PIPE"}},
        Row{"mutants_report", {"mutants", kScenario, "--report", "DIR"}},
        Row{"properties", {"search", "properties", "--cases", "1", "--report", "DIR"}},
        Row{"gate", {"gate", "DIR", "--lane", "sim", "--baseline", "PIPE"}},
        Row{"policy", {"gate", "DIR", "--lane", "sim", "--policy", "PIPE"}},
        Row{"compare", {"compare-reports", "PIPE", "DIR"}},
        Row{"compare_dirs", {"compare-reports", "DIR", "DIR"}}, Row{"report", {"report", "DIR"}},
        Row{"history", {"report", "DIR", "--history", "PIPE"}}, Row{"replay", {"replay", "PIPE"}},
        Row{"shrink", {"shrink", "PIPE"}}, Row{"verify", {"verify", "PIPE"}},
        Row{"inspect", {"inspect", "PIPE"}}, Row{"diff", {"diff", "PIPE", "PIPE"}},
        Row{"plan", {"plan", "PIPE", "--to", "dp2"}},
        Row{"reshard", {"reshard", "PIPE", "PIPE", "--ranks", "2"}},
        Row{"resume_proof", {"resume-proof", "PIPE", "PIPE"}}),
    [](const auto& row) { return row.param.name; });

/// A device is no pipe: it takes what it gets.
TEST(OutputFiles, that_are_devices_are_written) {
  const auto result = run_program({"mutants", kScenario, "--json", "/dev/null"}, {.seconds = 60});
  EXPECT_EQ(result.exit_code, 0) << result.all();
}

TEST(OutputFiles, without_a_report_are_refused_before_the_work) {
  const contracts::TemporaryDirectory directory;
  for (const char* text : {"", "{", "[]"}) {
    std::ofstream(directory.path() + "/report.json") << text;
    for (const Words& words :
         {Words{"mutants"}, Words{"mutants", "--matrix"}, Words{"search", "explore"},
          Words{"search", "properties"}, Words{"search", "exhaust"}}) {
      Words all = words;
      all.insert(all.end(), {"--report", directory.path()});
      const auto result = run_program(all, {.seconds = 20});
      EXPECT_EQ(result.exit_code, 2) << words[0] << text << result.all();
      EXPECT_THAT(result.err, testing::HasSubstr("the report can't be read"));
    }
  }
}

TEST(OutputFiles, in_folders_that_are_not_there_are_refused_before_the_work) {
  const auto result = run_program({"mutants", "--json", "/nowhere/results.json"}, {.seconds = 5});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.err, testing::HasSubstr("its folder does not exist"));
}

}  // namespace
}  // namespace reprise::test
