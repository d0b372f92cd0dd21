// Tests the guard that holds ratios of benchmarks against those that were kept.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "tests/contracts/temporary_directory.hpp"

namespace reprise::layers {
namespace {

class BenchGuard : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v python3 >/dev/null") != 0) GTEST_SKIP() << "no python3";
  }

  /// Measures one row.
  void measure(double ratio, double noise, double rate = 4) {
    std::ofstream(folder_.path() + "/load.json")
        << R"({"benchmarks": [{"name": "load/large/iterations:9", "ratio": )" << ratio
        << R"(, "noise": )" << noise << R"(, "ours_GBps": )" << rate << "}]}";
  }
  /// Returns the exit code of the guard; `said` is what it printed.
  int guard(const std::string& more = "") {
    const std::string command = "python3 " REPRISE_SOURCE_DIR "/tests/bench/guard.py " +
                                folder_.path() + " " + kept() + " " + more + " >" + folder_.path() +
                                "/said";
    const int status = std::system(command.c_str());
    said = text_of(folder_.path() + "/said");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void keep(double ratio) {
    measure(ratio, 0.02);
    ASSERT_EQ(guard("--write"), 0);
  }
  std::string kept() const { return folder_.path() + "/kept.tsv"; }
  static std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  contracts::TemporaryDirectory folder_;
  std::string said;
};

TEST_F(BenchGuard, fails_if_a_row_lost_15_per_cent_of_its_ratio) {
  keep(0.8);
  measure(0.69, 0.02);
  EXPECT_EQ(guard(), 0) << said;
  measure(0.67, 0.02, 3.3);
  EXPECT_EQ(guard(), 1);
  EXPECT_EQ(said, "load/large: 0.67 of its limit, before 0.80; noise 2%: SLOW\n");
}

TEST_F(BenchGuard, does_not_decide_what_the_noise_hides) {
  keep(0.8);
  measure(0.67, 0.2);
  EXPECT_EQ(guard(), 3);
  EXPECT_EQ(said, "load/large: 0.67 of its limit, before 0.80; noise 20%: not decided\n");
}

TEST_F(BenchGuard, does_not_blame_a_row_if_the_limit_became_faster) {
  keep(0.8);
  measure(0.6, 0.02, 3.5);
  EXPECT_EQ(guard(), 3);
  EXPECT_NE(said.find(": not decided: 3.5 GB/s, before 4: its limit is faster\n"),
            std::string::npos)
      << said;
}

TEST_F(BenchGuard, decides_on_another_processor_only_if_half_is_lost) {
  keep(0.8);
  const std::string other =
      std::regex_replace(text_of(kept()), std::regex("# processor: .*"), "# processor: another");
  std::ofstream(kept()) << other;
  measure(0.67, 0.02, 4);
  EXPECT_EQ(guard(), 3);
  EXPECT_NE(said.find("kept on:   another\n"), std::string::npos) << said;
  EXPECT_NE(said.find("noise 2%: not decided on this processor\n"), std::string::npos) << said;
  measure(0.75, 0.02);
  EXPECT_EQ(guard(), 0) << said;
  measure(0.39, 0.02);
  EXPECT_EQ(guard(), 1) << said;
}

TEST_F(BenchGuard, keeps_nothing_new_of_a_row_that_noise_hides) {
  keep(0.8);
  measure(0.3, 0.5);
  EXPECT_EQ(guard("--write"), 0);
  measure(0.67, 0.02, 3.3);
  EXPECT_EQ(guard(), 1) << said;
}

TEST_F(BenchGuard, wants_each_row_that_is_kept_and_keeps_each_that_is_measured) {
  measure(0.8, 0.02);
  EXPECT_EQ(guard(), 3) << said;  // nothing is kept
  keep(0.8);
  std::ofstream(kept(), std::ios::app) << "load/small\t0.5\t2\n";
  EXPECT_EQ(guard(), 1);
  EXPECT_NE(said.find("load/small: was not measured; its ratio was 0.50\n"), std::string::npos);
  std::ofstream(kept()) << "load/small\t0.5\t2\n";
  EXPECT_EQ(guard(), 1);
  EXPECT_NE(said.find("load/large: is new;"), std::string::npos) << said;
}

}  // namespace
}  // namespace reprise::layers
