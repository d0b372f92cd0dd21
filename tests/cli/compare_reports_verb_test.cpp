// Runs `reprise compare-reports` on the report of a real run, and on copies that were changed.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::compare_reports_verb_test {
namespace {

using Json = nlohmann::json;

const std::string kFile = REPRISE_SOURCE_DIR "/scenarios/placements/ep2.yaml";

class CompareReportsVerb : public testing::Test {
 protected:
  void SetUp() override {
    const auto ran = run_program({"run", kFile, "--report", path("real")});
    ASSERT_EQ(ran.exit_code, 0) << ran.all();
    real_ = Json::parse(text_of(path("real/report.json")));
    real_["project"] = {{"commit", std::string(40, 'a')}, {"dirty", false}, {"build", "b"}};
    real_["started"] = "2026-01-01T00:00:00Z";
    real_["seconds"] = 1000;  // as long as any scenario of a test
    write("old.json", [](Json&) {});
  }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }

  void write(const std::string& name, const std::function<void(Json&)>& change) const {
    Json document = real_;
    change(document);
    std::ofstream(path(name)) << document.dump(2) << '\n';
  }

  static void fail(Json& document) {
    document["verdict"] = document["scenarios"][0]["verdict"] = "fail";
    document["scenarios"][0]["code"] = "HANG";
  }

  ProgramResult compare(const std::vector<std::string>& names,
                        const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"compare-reports"};
    for (const auto& name : names) words.push_back(path(name));
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }

  contracts::TemporaryDirectory directory_;
  Json real_;
};

void expect_said(const ProgramResult& result, int code, const std::string& words) {
  EXPECT_EQ(result.exit_code, code) << words << '\n' << result.all();
  EXPECT_NE(result.all().find(words), std::string::npos) << words << '\n' << result.all();
}

TEST_F(CompareReportsVerb, says_whether_anything_got_worse) {
  write("failing.json", fail);
  const auto same = compare({"old.json", "old.json"});
  expect_said(same, 0, "same program and seed: digests, event hashes and counts must be equal\n");
  expect_said(same, 0, "nothing got worse\n");
  expect_said(compare({"old.json", "failing.json"}), 1, "2 got worse\n");
  expect_said(compare({"old.json", "failing.json"}), 1, "newly failing");
  expect_said(compare({"failing.json", "old.json"}), 0, "mended");
  expect_said(compare({"real", "old.json"}), 0, "different commit, build or seed");
}

TEST_F(CompareReportsVerb, other_digests_are_worse_only_at_the_same_commit) {
  const auto other = [](Json& document) { document["scenarios"][0]["event_hash"] = "0"; };
  write("other.json", other);
  write("later.json", [&](Json& document) {
    other(document);
    document["project"]["commit"] = std::string(40, 'b');
  });
  expect_said(compare({"old.json", "other.json"}), 1, "different event hash");
  expect_said(compare({"old.json", "later.json"}), 0,
              "information: different event hash (1): placements/ep2\n");
  const Json json = Json::parse(compare({"old.json", "other.json"}, {"--json"}).out);
  EXPECT_EQ(json["worse"], 1) << json;
  EXPECT_EQ(json["changes"][0]["subject"], "placements/ep2") << json;
}

TEST_F(CompareReportsVerb, the_limits_of_what_is_slower_can_be_chosen) {
  const double seconds = real_["scenarios"][0]["seconds"];
  write("slow.json", [&](Json& d) { d["scenarios"][0]["seconds"] = seconds * 10 + 5; });
  expect_said(compare({"old.json", "slow.json"}), 1, "slower");
  expect_said(compare({"old.json", "slow.json"}, {"--slower", "100000"}), 0, "nothing got worse");
  expect_said(compare({"old.json", "slow.json"}, {"--slower-seconds", "1000"}), 0,
              "nothing got worse");
  expect_said(compare({"old.json", "slow.json"}, {"--slower", "fast"}), 2,
              "--slower needs a number such as 1.5, not 'fast'");
}

TEST_F(CompareReportsVerb, more_than_two_are_a_history_by_their_start) {
  write("b.json", [](Json& d) {
    fail(d);
    d["started"] = "2026-01-02T00:00:00Z";
  });
  write("c.json", [](Json& d) { d["started"] = "2026-01-03T00:00:00Z"; });
  const auto mended = compare({"c.json", "b.json", "old.json"});
  expect_said(mended, 0, "placements/ep2  PFP\n");
  EXPECT_LT(mended.out.find("old.json"), mended.out.find("c.json")) << mended.out;
  write("d.json", [](Json& d) {
    fail(d);
    d["started"] = "2026-01-04T00:00:00Z";
  });
  expect_said(compare({"d.json", "c.json", "b.json", "old.json"}), 1, "placements/ep2  PFPF\n");
  const Json json = Json::parse(compare({"c.json", "b.json", "old.json"}, {"--json"}).out);
  EXPECT_EQ(json["changed"][0]["letters"], "PFP") << json;
  EXPECT_EQ(json["reports"].size(), 3U) << json;
  EXPECT_TRUE(json["worse"].empty()) << json;
}

TEST_F(CompareReportsVerb, one_folder_of_reports_is_a_history) {
  for (const char* night : {"1", "2", "3"}) {
    std::filesystem::create_directories(path("nights/" + std::string(night)));
    write("nights/" + std::string(night) + "/report.json", [&](Json& document) {
      document["started"] = "2026-01-0" + std::string(night) + "T00:00:00Z";
      if (*night == '2') fail(document);
    });
  }
  expect_said(compare({"nights"}), 0, "placements/ep2  PFP\n");
  std::filesystem::remove_all(path("nights/3"));
  expect_said(compare({"nights"}), 1, "placements/ep2  PF\n");
  std::filesystem::remove_all(path("nights/2"));
  expect_said(compare({"nights"}), 2, "for a history, name more or a folder of reports");
}

TEST_F(CompareReportsVerb, what_is_unreadable_or_of_two_lanes_is_exit_code_2) {
  write("mpi.json", [](Json& d) { d["lane"] = "mpi"; });
  write("newer.json", [](Json& d) { d["schema_version"] = 9; });
  std::ofstream(path("cut.json")) << real_.dump().substr(0, 100);
  expect_said(compare({"old.json", "nowhere.json"}), 2, "the report is missing");
  expect_said(compare({"cut.json", "old.json"}), 2, "is cut off");
  expect_said(
      compare({"old.json", "newer.json"}), 2,
      "UNSUPPORTED: the report's schema_version: is 9; this program reads 2; a newer reprise "
      "wrote the report: read it with that version, or run the lane again with this one");
  expect_said(compare({"old.json", "mpi.json"}), 2,
              "reports of two lanes are not comparable: sim and mpi");
  expect_said(compare({"old.json"}), 2, "name two reports to compare");
  const auto json = compare({"old.json", "cut.json"}, {"--json"});
  EXPECT_EQ(json.exit_code, 2);
  EXPECT_TRUE(Json::parse(json.out).contains("error")) << json.out;
}

TEST_F(CompareReportsVerb, warns_of_unknown_fields) {
  write("later.json", [](Json& d) { d["later"] = 1; });
  expect_said(compare({"old.json", "later.json"}), 0, "the unknown field 'later' was ignored");
}

}  // namespace
}  // namespace reprise::test::compare_reports_verb_test
