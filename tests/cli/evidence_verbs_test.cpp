// Tests that `properties` and `mutants` add evidence to a run's report, and that the gate refuses a
// report without this evidence.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

using contracts::TemporaryDirectory;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

const std::string kEvidenceScenario = REPRISE_SOURCE_DIR "/scenarios/placements/tp2dp2-to-tp4.yaml";
const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";

// The signal comes when the report's directory is tried, so before the first case.
TEST(Interrupted, each_evidence_verb_says_what_is_left_and_keeps_the_report) {
  if (!has_tripwires()) GTEST_SKIP() << "needs dnotify";
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{"search", "properties", "continuity", "--cases", "7"}, "interrupted: 7 cases not tried\n"},
      {{"mutants", kEvidenceScenario, "--only", "floor-vs-ceil-chunk"},
       "interrupted: 1 of 1 mutants were not tried in every scenario that declares them, and 1 not "
       "in "
       "every random case\n"},
      {{"mutants", kEvidenceScenario, "--matrix", "--only", "floor-vs-ceil-chunk"},
       "interrupted: left out, because not tried with every mutant: 1 scenario\n"},
      {{"search", "exhaust", "--max-world", "2"}, "interrupted: the other pairs were not run\n"},
      {{"search", "explore", "--runs", "3"}, "interrupted: the search is incomplete\n"}};
  for (auto [words, says] : rows) {
    const TemporaryDirectory out;
    words.insert(words.end(), {"--report", out.path()});
    const auto result = run_program(words, {.tripwire = Tripwire{out.path(), DN_CREATE, SIGINT}});
    EXPECT_EQ(result.exit_code, 3) << words[0] << result.all();
    EXPECT_THAT(result.out, HasSubstr(says + out.path() +
                                      " was not changed, because this run is incomplete\n"));
    EXPECT_TRUE(std::filesystem::is_empty(out.path())) << words[0];
  }
}

/// Creates complete evidence for one scenario and a baseline that the program writes from this
/// evidence.
class Evidence : public testing::Test {
 protected:
  void SetUp() override {
    require_pass({"run", kEvidenceScenario, "--double", "--report", path("full")});
    plain_ = report();
    require_pass({"search", "properties", "continuity", "survives", "--cases", "4", "--seed", "3",
                  "--jobs", "2", "--report", path("full")});
    require_pass({"mutants", kEvidenceScenario, "--only", "floor-vs-ceil-chunk", "--property-cases",
                  "8", "--report", path("full")});
    full_ = report();
    write("full.json", full_);
    require_pass({"gate", path("full.json"), "--commit", kCommit, "--write-baseline",
                  path("baseline.json")});
  }

  void require_pass(const std::vector<std::string>& words) const {
    const auto result = run_program(words, {.seconds = 200});
    ASSERT_EQ(result.exit_code, 0) << result.all();
  }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  Json report() const { return Json::parse(text_of(path("full/report.json"))); }

  /// Writes the report with the commit kCommit and "dirty": false, as if the tree had no
  /// uncommitted changes.
  void write(const std::string& name, Json document) const {
    document["project"]["commit"] = kCommit;
    document["project"]["dirty"] = false;
    std::ofstream(path(name), std::ios::binary) << document.dump(2) << '\n';
  }

  ProgramResult gate(const Json& document) const {
    write("judged.json", document);
    return run_program({"gate", path("judged.json"), "--baseline", path("baseline.json"),
                        "--commit", kCommit.substr(0, 12)});
  }

  TemporaryDirectory directory_;
  Json plain_;
  Json full_;
};

TEST_F(Evidence, properties_are_in_the_report_with_cases_and_seed) {
  ASSERT_EQ(full_["properties"].size(), 2U);
  const Json& continuity = full_["properties"][0];
  EXPECT_EQ(continuity["name"], "continuity");
  EXPECT_EQ(continuity["cases"], 4);
  EXPECT_EQ(continuity["seed"], 3);
  EXPECT_EQ(continuity["verdict"], "pass");
  std::uint64_t lives = 0;
  for (const auto& count : continuity.at("distribution").at("lives")) lives += count.get<int>();
  EXPECT_EQ(lives, 4U) << continuity["distribution"];
  EXPECT_EQ(full_["scenarios"], plain_["scenarios"]) << "the run's own evidence must remain";
  EXPECT_EQ(full_["determinism"], plain_["determinism"]);
}

TEST_F(Evidence, gate_refuses_a_report_that_lost_a_property_or_its_cases) {
  EXPECT_EQ(gate(full_).exit_code, 0) << gate(full_).all();
  struct Row {
    std::string words;
    std::function<void(Json&)> spoil;
  };
  const std::vector<Row> rows = {{"property survives: it is in the baseline but not in the report",
                                  [](Json& r) { r["properties"].erase(1); }},
                                 {"property continuity: 3 cases, but the baseline has 4",
                                  [](Json& r) {
                                    r["properties"][0]["cases"] = 3;
                                    r["properties"][0]["distribution"] = Json::object();
                                  }},
                                 {"property continuity: fail with seed 3: a case",
                                  [](Json& r) {
                                    r["properties"][0]["verdict"] = "fail";
                                    r["properties"][0]["counterexample"] = "a case";
                                  }},
                                 {"property continuity: says that lives", [](Json& r) {
                                    for (auto& count : r["properties"][0]["distribution"]["lives"])
                                      count = 5;
                                  }}};
  for (const auto& row : rows) {
    Json document = full_;
    row.spoil(document);
    const auto result = gate(document);
    EXPECT_EQ(result.exit_code, 1) << row.words;
    EXPECT_THAT(result.out, HasSubstr(row.words));
  }
}

TEST_F(Evidence, a_plain_run_lists_what_it_lacks_and_gate_says_it_in_one_line) {
  Json plain = plain_;
  for (auto& result : plain["scenarios"]) result["doubled"] = false;
  plain["determinism"]["runs_doubled"] = 0;
  EXPECT_THAT(plain_["not_claimed"], Contains(StartsWith("mutants: none was switched on")));
  EXPECT_THAT(plain_["not_claimed"], Contains(StartsWith("properties: no random case")));
  EXPECT_THAT(full_["not_claimed"], Not(Contains(StartsWith("mutants: none"))));
  EXPECT_THAT(full_["not_claimed"], Not(Contains(StartsWith("properties: no"))));
  const auto result = gate(plain);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("refused: 1 reason\n"));
  EXPECT_THAT(result.out, HasSubstr("scenarios --double --report " +
                                    path("judged.json").substr(0, path("").size() - 1)));
}

TEST_F(Evidence, a_mutant_lists_the_property_that_caught_it) {
  const Json& mutant = full_["mutants"][0];
  EXPECT_EQ(mutant["caught_by"][0]["scenario"], "placements/tp2dp2-to-tp4");
  ASSERT_EQ(mutant["caught_by"].size(), 3U) << mutant;
  for (const std::size_t i : {1, 2}) {
    const Json& by = mutant["caught_by"][i];
    EXPECT_EQ(by["property"], i == 1 ? "continuity" : "survives");
    EXPECT_FALSE(by.contains("scenario"));
    EXPECT_THAT(by["reason"].get<std::string>(), StartsWith("case "));
  }
  EXPECT_GT(mutant["property_cases"], 1);
}

TEST_F(Evidence, what_another_program_made_gets_nothing_added) {
  for (const auto* what : {"commit", "build"}) {
    Json other = full_;
    other["project"][what] = kCommit;
    std::ofstream(path("full/report.json")) << other.dump(2) << '\n';
    const auto result = run_program({"search", "properties", "continuity", "--cases", "1", "--seed",
                                     "1", "--report", path("full")});
    EXPECT_EQ(result.exit_code, 2) << what;
    EXPECT_THAT(result.err, HasSubstr("can be added")) << what;
    EXPECT_EQ(report()["properties"], full_["properties"]);
  }
}

TEST(MutantsVerb, where_scenarios_alone_ask_a_mutant_that_is_said) {
  const TemporaryDirectory out;
  const std::string scenario = REPRISE_SOURCE_DIR "/scenarios/rerun/spike-beats-fault.yaml";
  const auto none = run_program({"mutants", kEvidenceScenario, "--only", "floor-vs-ceil-chunk",
                                 "--property-cases", "0", "--report", out.path()});
  EXPECT_EQ(none.exit_code, 0) << none.all();
  EXPECT_THAT(none.out, HasSubstr("no random case was run; only scenarios were"));
  const Json mutant = Json::parse(text_of(out.path() + "/report.json"))["mutants"][0];
  EXPECT_EQ(mutant["property_cases"], 0);
  for (const auto& by : mutant["caught_by"]) EXPECT_FALSE(by.contains("property")) << by;

  const auto one = run_program(
      {"mutants", scenario, "--only", "rerun-precedence-swapped", "--property-cases", "1"});
  EXPECT_EQ(one.exit_code, 0) << one.all();
  EXPECT_THAT(one.out, HasSubstr("random cases caught 0 of 1 mutants; caught only by scenarios: "
                                 "rerun-precedence-swapped ("));
}

TEST(PropertiesVerb, wrong_names_and_numbers_are_said) {
  const auto wrong = run_program({"search", "properties", "continuty"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("available: continuity, layout-free"));
  const auto none = run_program({"search", "properties", "--cases", "0"});
  EXPECT_EQ(none.exit_code, 2) << none.all();
  const auto list = run_program({"search", "properties", "--list"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_THAT(list.out, HasSubstr("goes on from a committed checkpoint"));
}

}  // namespace
}  // namespace reprise::test
