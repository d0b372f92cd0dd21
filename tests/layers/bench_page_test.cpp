// Tests the page that tests/bench/publish.py makes of the results of benchmarks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/contracts/temporary_directory.hpp"

namespace reprise::layers {
namespace {

class BenchPage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v python3 >/dev/null") != 0) GTEST_SKIP() << "no python3";
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(results_.path() + "/" + name) << text;
  }
  /// Writes the results of one benchmark: a JSON object without its braces and its type.
  void write_row(const std::string& name, const std::string& fields) {
    write(name, R"({"benchmarks": [{"run_type": "iteration", )" + fields + "}]}");
  }
  /// Returns the page; empty if the script failed.
  std::string page() {
    const std::string command = "cd " REPRISE_SOURCE_DIR " && python3 tests/bench/publish.py " +
                                results_.path() + " " + out_.path() + " >/dev/null";
    if (std::system(command.c_str()) != 0) return "";
    std::ostringstream text;
    for (const auto& file : std::filesystem::directory_iterator(out_.path())) {
      if (file.path().extension() == ".md") text << std::ifstream(file.path()).rdbuf();
    }
    return text.str();
  }

  contracts::TemporaryDirectory results_;
  contracts::TemporaryDirectory out_;
};

testing::AssertionResult has(const std::string& page, const std::string& line) {
  if (("\n" + page).find("\n" + line + "\n") != std::string::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "no line '" << line << "' in\n" << page;
}

TEST_F(BenchPage, explains_a_missed_row_by_its_bare_work) {
  write_row("load.json",
            R"("name": "warm_load/large/iterations:9/manual_time", "ours_GBps": 2.0,
               "limit_GBps": 4.0, "ratio": 0.5, "bare_ratio": 0.625, "aim": 0.85, "threads": 2,
               "label": "limit: a copy; bare: preadv of the items")");
  const std::string text = page();
  EXPECT_TRUE(has(text,
                  "| warm_load/large | 2.00 GB/s | 4.00 GB/s: a copy, 2 threads | 0.50 | 0.62 | "
                  "0.85 | missed |  | bare has 0.62 of the limit, ours 0.80 of bare |"));
  EXPECT_TRUE(has(text, "- warm_load/large: preadv of the items."));
  EXPECT_EQ(text.find("by hand"), std::string::npos);
}

TEST_F(BenchPage, adds_where_the_time_of_a_missed_row_went) {
  write_row("load.json",
            R"("name": "warm_load/small", "ours_GBps": 2.0, "limit_GBps": 4.0, "ratio": 0.5,
               "bare_ratio": 0.625, "aim": 0.85, "label": "limit: a copy; bare: preadv")");
  write("warm_load.profile", "    99.00%  reprise  [.] reprise::load\n");
  write("warm_load-small.profile",
        "    40.00%  reprise         [.] reprise::pickle::Machine::step\n"
        "    20.25%  libc.so.6       [.] _int_malloc\n"
        "    19.00%  [kernel]        [k] copy_page\n"
        "    10.00%  libstdc++.so.6  [.] operator new\n"
        "     1.00%  ld.so           [.] open_path\n");
  const std::string text = page();
  EXPECT_NE(text.find("ours 0.80 of bare; of its CPU time, pickles 40 %, the allocator 30 %, "
                      "the kernel 19 %, other 11 % |"),
            std::string::npos)
      << text;
}

TEST_F(BenchPage, gives_no_row_the_profile_of_another) {
  write("warm_load-small.profile", "    99.00%  reprise  [.] reprise::load\n");
  write_row("load.json", R"("name": "warm_load/small_crc32", "ours_GBps": 2.0, "limit_GBps": 4.0,
                            "ratio": 0.5, "aim": 0.85, "label": "limit: a copy")");
  EXPECT_NE(page().find("| missed |  | not explained |"), std::string::npos);
}

TEST_F(BenchPage, explains_a_missed_time_by_its_bare_work) {
  write_row("plan_scale.json",
            R"("name": "given", "seconds": 0.3, "bare_seconds": 0.1, "aim_seconds": 0.25,
               "label": "bare: clearing memory")");
  EXPECT_TRUE(has(page(),
                  "| given | 300 ms |  |  | 100 ms | at most 250 ms | missed |  | "
                  "bare takes 100 ms, ours 3.00 times as long |"));
}

TEST_F(BenchPage, says_of_which_missed_row_nothing_is_known) {
  write_row("exhaust.json", R"("name": "all_scenarios", "seconds": 93, "aim_seconds": 45)");
  const std::string text = page();
  EXPECT_NE(text.find("| missed |  | not explained |"), std::string::npos) << text;
  EXPECT_NE(text.find("`not explained`: "), std::string::npos) << text;
}

TEST_F(BenchPage, says_which_reasons_are_kept_by_hand) {
  write("beside_torch.json",
        R"({"versions": {"torch": "2.15.0", "megatron_core": "", "python": "3.11"}, "not_run": [],
            "rows": [{"row": "save", "what": "until the job may go on", "ours": "a", "torch": "b",
                      "ours_s": 2, "torch_s": 2, "ratio": 1}]})");
  const std::string text = page();
  EXPECT_NE(text.find("| 1.00 | by hand: both copy"), std::string::npos) << text;
  EXPECT_NE(text.find("`by hand`: the reason is from a list"), std::string::npos) << text;
}

TEST_F(BenchPage, says_what_each_comparison_was_measured_with) {
  const auto compared = [](const std::string& megatron, const std::string& row,
                           const std::string& not_run) {
    return R"({"versions": {"torch": "2.15.0", "megatron_core": ")" + megatron +
           R"(", "python": "3.11"}, "not_run": [)" + not_run + R"(], "rows": [{"row": ")" + row +
           R"(", "what": ")" + row +
           R"(", "ours": "a", "torch": "b", "ours_s": 1, "torch_s": 2, "ratio": 2}]})";
  };
  write("beside_torch.json", compared("0.16.1", "owners", R"("manifest: not run, it has none")"));
  write("beside_torch_newest.json", compared("0.19.2", "manifest", ""));
  const std::string text = page();
  const auto owners = text.find("megatron-core 0.16.1, Python 3.11:\n\n");
  const auto manifest = text.find("megatron-core 0.19.2, Python 3.11:\n\n");
  ASSERT_NE(owners, std::string::npos) << text;
  ASSERT_NE(manifest, std::string::npos) << text;
  EXPECT_LT(owners, text.find("| owners | a |"));
  EXPECT_LT(text.find("| owners | a |"), manifest);
  EXPECT_LT(manifest, text.find("| manifest | a |"));
  EXPECT_EQ(text.find("not run"), std::string::npos) << text;
}

TEST_F(BenchPage, states_the_load_before_the_run) {
  write("load_before.txt", "9.50 8.25 7.00\n");
  EXPECT_TRUE(has(page(), "Load averages before the run: 9.50 8.25 7.00."));
}

}  // namespace
}  // namespace reprise::layers
