// Tests `verify --health` and `inspect --stats`: exit codes, texts and reports.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/damage.hpp"
#include "tests/cli/run_program.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::test::health_test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

const std::string kHealthy = "mcore_0.16.1_gpt_tp2_pp2";

struct Row {
  std::vector<std::string> options;
  int exit_code;
  const char* words;
};

TEST(Health, limits_decide_the_exit_code) {
  const Row rows[] = {
      {{"--health"}, 0, "healthy: 4,368 numbers in 36 tensors looked at, 0 errors, 0 warnings"},
      {{"--health", "--limit", "abs=0.01"},
       1,
       "error LOAD_REJECTED: the largest absolute value is"},
      {{"--health", "--limit", "abs=0.01"}, 1, "not healthy: 4,368 numbers"},
      {{"--health", "--limit", "abs=1e30"}, 0, "healthy:"},
      {{"--health", "--limit", "zeros=0", "--limit", "abs=1e30"}, 1, "are zero"},
      {{"--limit", "nan=0"}, 2, "--limit needs --health"},
      {{"--health", "--no-payload"}, 2, "--no-payload leaves out"},
      {{"--health", "--limit", "nan"}, 2, "--limit nan: not KIND=N, such as nan=0"},
      {{"--health", "--limit", "nan=-1"}, 2, "not a count"},
      {{"--health", "--limit", "inf=1.5"}, 2, "not a count"},
      {{"--health", "--limit", "zeros=1.5"}, 2, "not a share"},
      {{"--health", "--limit", "abs=inf"}, 2, "not a number"},
      {{"--health", "--limit", "abs="}, 2, "not a number"},
      {{"--health", "--limit", "size=3"}, 2, "the kinds are nan, inf, zeros, denormals and abs"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.options.back() + ' ' + row.words);
    std::vector<std::string> arguments{"verify", data(kHealthy)};
    arguments.insert(arguments.end(), row.options.begin(), row.options.end());
    const auto result = run_program(arguments);
    EXPECT_EQ(result.exit_code, row.exit_code) << result.all();
    EXPECT_THAT(result.all(), HasSubstr(row.words));
  }
}

TEST(Health, a_report_fails_with_it) {
  const contracts::TemporaryDirectory directory;
  const auto report = directory.path() + "/report";
  const auto result = run_program(
      {"verify", "--health", "--limit", "abs=0.01", "--report", report, data(kHealthy)});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  const Json json = [&] {
    std::ifstream file(report + "/report.json");
    return Json::parse(file);
  }();
  EXPECT_EQ(json["scenarios"][0]["verdict"], "fail");
  EXPECT_EQ(json["scenarios"][0]["code"], "LOAD_REJECTED");
}

TEST(Health, stats_are_printed_and_filtered) {
  const auto table = run_program({"inspect", "--stats", "--keys", "final", data(kHealthy)});
  EXPECT_EQ(table.exit_code, 0) << table.all();
  EXPECT_THAT(table.out, HasSubstr("denormal"));
  const auto result =
      run_program({"inspect", "--stats", "--json", "--keys", "final", data(kHealthy)});
  const Json json = Json::parse(result.out);
  ASSERT_FALSE(json["tensors"].empty());
  for (const auto& tensor : json["tensors"]) {
    EXPECT_GT(tensor["stats"]["numbers"].get<int>(), 0);
    EXPECT_LE(tensor["stats"]["min"].get<double>(), tensor["stats"]["mean"].get<double>());
  }
  EXPECT_EQ(json["damage"], Json::array());
}

}  // namespace
}  // namespace reprise::test::health_test
