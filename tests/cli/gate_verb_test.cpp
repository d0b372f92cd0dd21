// Runs `reprise gate` on a real baseline and on a real report, which is damaged in many ways.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/bytes.hpp"
#include "core/base/print.hpp"
#include "core/base/sha256.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::gate_verb_test {
namespace {

using contracts::TemporaryDirectory;
using Json = nlohmann::json;
namespace fs = std::filesystem;

const std::string kFolder = REPRISE_SOURCE_DIR "/scenarios/placements/";
const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";

/// Runs a scenario that passes and one that is refused. Sets the commit and "dirty": false in the
/// report, as if the tree had no uncommitted changes. Then lets the program write a baseline from
/// this report.
class GateVerb : public testing::Test {
 protected:
  void SetUp() override {
    const auto ran = run_program({"run", kFolder + "tp2dp2-to-tp4.yaml",
                                  kFolder + "buckets-refuse.yaml", "--report", path("real")});
    ASSERT_EQ(ran.exit_code, 0) << ran.all();
    real_ = text_of(path("real/report.json"));
    Json document = Json::parse(real_);
    document["project"]["commit"] = kCommit;
    document["project"]["dirty"] = false;
    write("report.json", document);
    const auto wrote = run_program({"gate", path("report.json"), "--commit", kCommit,
                                    "--write-baseline", path("baseline.json")});
    ASSERT_EQ(wrote.exit_code, 0) << wrote.all();
  }

  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  void write(const std::string& name, const Json& document) const {
    write(name, document.dump(2) + "\n");
  }

  /// Runs `reprise gate` on the report against the baseline.
  ProgramResult gate(const std::string& name, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {
        "gate", path(name), "--baseline", path("baseline.json"), "--commit", kCommit.substr(0, 12)};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }

  std::string report() const { return text_of(path("report.json")); }

  /// Returns the day as the clock has it, in UTC.
  static std::string today() {
    std::array<char, 16> text{};
    const std::time_t now = std::time(nullptr);
    std::strftime(text.data(), text.size(), "%Y-%m-%d", std::gmtime(&now));
    return text.data();
  }

  TemporaryDirectory directory_;
  std::string real_;
};

TEST_F(GateVerb, accepts_the_right_report_by_file_and_by_directory) {
  const auto by_file = gate("report.json");
  EXPECT_EQ(by_file.exit_code, 0) << by_file.all();
  EXPECT_NE(by_file.out.find("accepted\n"), std::string::npos) << by_file.out;
  EXPECT_NE(by_file.out.find("sim: 4 scenarios (baseline 4)"), std::string::npos) << by_file.out;
  EXPECT_EQ(gate("").exit_code, 0);
  const auto json = gate("report.json", {"--json"});
  EXPECT_EQ(Json::parse(json.out)["accepted"], true) << json.all();
  EXPECT_EQ(json.exit_code, 0);
}

TEST_F(GateVerb, a_report_can_be_the_baseline_and_the_commit_is_the_programs) {
  const Json real = Json::parse(real_);
  if (real["project"]["commit"] == "unknown") GTEST_SKIP() << "built outside a git clone";
  const std::vector<std::string> words = {"gate", path("real"), "--baseline", path("report.json")};
  auto allowing = words;
  allowing.emplace_back("--allow-dirty");
  EXPECT_EQ(run_program(allowing).exit_code, 0);
  EXPECT_EQ(run_program(words).exit_code, real["project"]["dirty"] == true ? 1 : 0);
  const auto other = run_program({"gate", path("report.json"), "--baseline", path("report.json")});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.out.find("the report is of commit '" + kCommit), std::string::npos) << other.out;
}

TEST_F(GateVerb, what_a_run_shows_of_the_uninterrupted_job_is_all_there) {
  const Json scenario = Json::parse(real_)["scenarios"].back();
  ASSERT_FALSE(scenario["trajectory"].empty());
  for (const auto& point : scenario["trajectory"]) {
    ASSERT_TRUE(point["uninterrupted"]["loss_scale"].is_number()) << point;
    EXPECT_EQ(point["uninterrupted"]["loss_scale"], point["loss_scale"]);
  }
}

TEST_F(GateVerb, refuses_what_is_absent_cut_off_or_no_report) {
  const std::string text = report();
  fs::create_directory(path("empty"));
  const auto refused = [&](const std::string& name, const std::string& words) {
    const auto result = gate(name);
    EXPECT_EQ(result.exit_code, 1) << words << result.all();
    EXPECT_NE(result.out.find(path(name) + ": " + words), std::string::npos) << result.all();
    EXPECT_NE(result.out.find("refused: "), std::string::npos) << result.all();
  };
  refused("nowhere.json", "is missing");
  refused("empty", "is missing");
  const std::size_t lengths[] = {0,
                                 1,
                                 2,
                                 3,
                                 10,
                                 100,
                                 1000,
                                 text.size() / 3,
                                 text.size() / 2,
                                 text.size() - 3,
                                 text.size() - 2};
  for (const std::size_t bytes : lengths) {
    write("cut.json", text.substr(0, bytes));
    refused("cut.json", bytes == 0 ? "is empty" : "is cut off after " + with_commas(bytes));
  }
  std::string torn = text;
  for (std::size_t at = text.size() / 2; at < torn.size(); ++at) torn[at] = '\0';
  write("torn.json", torn);
  refused("torn.json", "is not valid JSON at byte");
  write("padded.json", text + std::string(512, '\0'));
  refused("padded.json", "is not valid JSON at byte");
  write("other.json", text_of(path("baseline.json")));
  refused("other.json", "schema_version: is missing");
}

TEST_F(GateVerb, refuses_what_was_spoilt) {
  struct Row {
    std::string words;
    std::function<void(Json&)> spoil;
  };
  const auto scenario = [](Json& r) -> Json& { return r["scenarios"].back(); };
  const auto rank = [&](Json& r) -> Json& { return scenario(r)["ranks"][1]; };
  const std::string name = Json::parse(report())["scenarios"].back()["name"];
  ASSERT_EQ(name, "placements/tp2dp2-to-tp4");
  const std::vector<Row> rows = {
      {"the verdict is fail", [](Json& r) { r["verdict"] = "fail"; }},
      {name + ": fail", [&](Json& r) { scenario(r)["verdict"] = "fail"; }},
      {name + ": inconclusive", [&](Json& r) { scenario(r)["verdict"] = "inconclusive"; }},
      {name + ": was not run but is not listed",
       [&](Json& r) {
         scenario(r)["verdict"] = "not_run";
         r["lanes"]["run"] = 3;
       }},
      {"lanes.run: says 4, but 3", [&](Json& r) { scenario(r)["verdict"] = "not_run"; }},
      {name + ": not_run, but it was run for the baseline: no time",
       [&](Json& r) {
         scenario(r)["verdict"] = "not_run";
         r["lanes"]["run"] = 3;
         r["lanes"]["skipped"].push_back({{"scenario", name}, {"reason", "no time"}});
       }},
      {"the report is of commit", [](Json& r) { r["project"]["commit"] = std::string(40, 'f'); }},
      {"the tree had uncommitted changes", [](Json& r) { r["project"]["dirty"] = true; }},
      {name + ": it is in the baseline but not in the report",
       [](Json& r) {
         r["scenarios"].erase(r["scenarios"].size() - 1);
         r["lanes"]["run"] = r["lanes"]["planned"] = 3;
       }},
      {"elements compared, but the baseline has",
       [&](Json& r) { rank(r)["elements"] = rank(r)["elements"].get<int>() - 1; }},
      {"tensors and objects compared, but the baseline has",
       [&](Json& r) { rank(r)["compared"] = rank(r)["compared"].get<int>() - 1; }},
      {"rank 1 has max_delta 1e-09", [&](Json& r) { rank(r)["max_delta"] = 1e-9; }},
      {"rank 1 has max_delta nan", [&](Json& r) { rank(r)["max_delta"] = "nan"; }},
      {"rank 1 has 1 element with different bits", [&](Json& r) { rank(r)["bit_mismatches"] = 1; }},
      {"rank 1 owns state but compared nothing",
       [&](Json& r) { rank(r)["elements"] = rank(r)["compared"] = 0; }},
      {"VALIDATOR_VACUOUS",
       [](Json& r) {
         r["mutants"].push_back(
             {{"name", "m"}, {"defect", "d"}, {"caught", false}, {"caught_by", Json::array()}});
       }},
      {"property p: fail",
       [](Json& r) {
         r["properties"].push_back({{"name", "p"},
                                    {"cases", 1},
                                    {"seed", 1},
                                    {"verdict", "fail"},
                                    {"distribution", Json::object()},
                                    {"counterexample", nullptr}});
       }},
      {"differed the second time", [](Json& r) { r["determinism"]["mismatches"] = 1; }},
      {"lanes.planned: says 9", [](Json& r) { r["lanes"]["planned"] = 9; }},
      {"'mpi' is not one of the lanes to judge", [](Json& r) { r["lane"] = "mpi"; }},
      {"diverged from the uninterrupted run",
       [&](Json& r) { scenario(r)["trajectory"][0]["uninterrupted"]["loss_scale"] = 3; }},
  };
  for (const auto& row : rows) {
    Json document = Json::parse(report());
    row.spoil(document);
    write("spoilt.json", document);
    const auto result = gate("spoilt.json");
    EXPECT_EQ(result.exit_code, 1) << row.words << '\n' << result.all();
    EXPECT_NE(result.out.find(row.words), std::string::npos) << row.words << '\n' << result.all();
    EXPECT_NE(result.out.find("; fix: "), std::string::npos) << result.all();
    EXPECT_EQ(result.err, "") << row.words;
  }
}

/// What no run of one program with one seed can show is refused, one reason each.
TEST_F(GateVerb, more_than_the_baseline_at_one_commit_is_as_wrong_as_less) {
  const auto refused = [&](const std::string& words, const std::function<void(Json&)>& spoil) {
    Json document = Json::parse(report());
    spoil(document["scenarios"].back());
    write("spoilt.json", document);
    const auto result = gate("spoilt.json");
    EXPECT_EQ(result.exit_code, 1) << words << result.all();
    EXPECT_NE(result.out.find(words), std::string::npos) << words << '\n' << result.all();
    EXPECT_NE(result.out.find("refused: 1 reason\n"), std::string::npos) << result.all();
  };
  refused("the number of elements is '", [](Json& scenario) {
    auto& elements = scenario["ranks"][1]["elements"];
    elements = elements.get<int>() + 1;
  });
  refused("the content digest is 'another', but the baseline has '",
          [](Json& scenario) { scenario["content_digest"] = "another"; });
  refused("the event hash is 'another', but the baseline has '",
          [](Json& scenario) { scenario["event_hash"] = "another"; });
  refused("claims pass, but has the code ZERO_FILL",
          [](Json& scenario) { scenario["code"] = "ZERO_FILL"; });
}

TEST_F(GateVerb, counts_that_no_run_reaches_are_refused) {
  Json document = Json::parse(report());
  document["scenarios"].back()["ranks"][1]["elements"] = ~std::uint64_t{0};
  write("spoilt.json", document);
  const auto result = gate("spoilt.json");
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_NE(
      result.out.find("says that rank 1 compared 18,446,744,073,709,551,615 elements, which no run "
                      "does"),
      std::string::npos)
      << result.all();
}

TEST_F(GateVerb, warns_of_each_unknown_field_once_and_decides_as_without_it) {
  Json document = Json::parse(report());
  document["later"] = 1;
  for (auto& scenario : document["scenarios"]) scenario["colour"] = "red\x1b[2J";
  write("later.json", document);
  const auto result = gate("later.json");
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_EQ(result.err, "warning: " + path("later.json") +
                            ": the unknown field 'later' was ignored\n" +
                            "warning: " + path("later.json") +
                            ": the unknown field 'scenarios[].colour' (4 times) was ignored\n");
  EXPECT_EQ(Json::parse(gate("later.json", {"--json"}).out)["accepted"], true);
}

TEST_F(GateVerb, an_unreadable_report_is_exactly_one_reason) {
  Json newer = Json::parse(report());
  newer["schema_version"] = 3;
  newer["scenarios"] = "another form";
  write("newer.json", newer);
  write("cut.json", report().substr(0, 1000));
  write("policy.yaml", std::string("lanes: {sim: {scenarios: 4}}\nknown_failures:\n"
                                   "- {scenario: x, code: HANG, reason: r, owner: o, expires: "
                                   "2999-01-01}\n"));
  const std::pair<std::string, std::string> rows[] = {
      {"nowhere.json", "is missing"},
      {"cut.json", "is cut off after 1,000 bytes"},
      {"newer.json",
       "schema_version: is 3; this program reads 2; a newer reprise wrote the report; fix: "
       "read it with that version, or run the lane again with this one\n"},
  };
  for (const auto& [name, words] : rows) {
    const auto result = gate(name, {"--policy", path("policy.yaml")});
    EXPECT_EQ(result.exit_code, 1) << result.all();
    EXPECT_EQ(result.out.find(path(name) + ": " + words), 0U) << result.all();
    EXPECT_NE(result.out.find("refused: 1 reason\n"), std::string::npos) << result.all();
  }
}

TEST_F(GateVerb, a_known_failure_is_listed_until_it_expires) {
  const std::string name = Json::parse(report())["scenarios"].back()["name"];
  Json document = Json::parse(report());
  document["verdict"] = document["scenarios"].back()["verdict"] = "fail";
  document["scenarios"].back()["code"] = "ZERO_FILL";
  document["scenarios"].back()["reason"] = "zeros";
  write("failing.json", document);
  write("known.yaml", "known_failures:\n  - scenario: " + name +
                          "\n    code: ZERO_FILL\n    reason: the store loses it\n    owner: "
                          "jane\n    expires: 2026-03-31\n");
  const auto on = [&](const std::string& day, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--policy", path("known.yaml"), "--today", day});
    return gate("failing.json", more);
  };
  EXPECT_EQ(gate("failing.json").exit_code, 1);
  const auto accepted = on("2026-03-31");
  EXPECT_EQ(accepted.exit_code, 0) << accepted.all();
  EXPECT_NE(accepted.out.find("known failure: scenario " + name +
                              ": ZERO_FILL: the store loses it; owner jane, accepted until "
                              "2026-03-31\n"),
            std::string::npos)
      << accepted.out;
  EXPECT_NE(accepted.out.find("accepted with 1 known failure\n"), std::string::npos);
  EXPECT_EQ(Json::parse(on("2026-03-31", {"--json"}).out)["known_failures"][0]["owner"], "jane");
  EXPECT_EQ(on("2026-03-31", {"--lane", "sim"}).exit_code, 0) << "it names no lanes to judge";
  const auto expired = on("2026-04-01");
  EXPECT_EQ(expired.exit_code, 1) << expired.all();
  EXPECT_NE(expired.out.find("known.yaml:2: known failure " + name +
                             ": expired on 2026-03-31, and today is 2026-04-01; fix: "),
            std::string::npos)
      << expired.out;
  // Without --today the clock decides.
  const auto by_clock = [&](const std::string& day) {
    std::string text = text_of(path("known.yaml"));
    text.replace(text.find("2026-03-31"), 10, day);
    write("clock.yaml", text);
    return gate("failing.json", {"--policy", path("clock.yaml")});
  };
  EXPECT_EQ(by_clock("2999-12-31").exit_code, 0);
  EXPECT_EQ(by_clock("2001-01-01").exit_code, 1);
  EXPECT_NE(by_clock("2001-01-01").out.find("today is " + today().substr(0, 7)), std::string::npos);
}

TEST_F(GateVerb, a_known_mutant_does_not_count_among_all_of_a_policy) {
  const auto listed = run_program({"mutants", "--list"});
  std::vector<std::string> names;
  for (std::size_t at = 0; at < listed.out.size(); at = listed.out.find('\n', at) + 1) {
    const bool first = at == 0 || listed.out.compare(at - 2, 2, "\n\n") == 0;
    if (first && listed.out[at] != '\n') {
      names.push_back(listed.out.substr(at, listed.out.find('\n', at) - at));
    }
  }
  ASSERT_GT(names.size(), 50U);
  Json document = Json::parse(report());
  document["verdict"] = "fail";
  for (const auto& name : names) {
    const bool caught = name != names.front();
    Json by = Json::array();
    if (caught)
      by.push_back(
          {{"scenario", "placements/buckets-refuse"}, {"verdict", "HANG"}, {"reason", "r"}});
    document["mutants"].push_back(
        {{"name", name}, {"defect", "d"}, {"caught", caught}, {"caught_by", by}});
  }
  write("survived.json", document);
  const std::string demands = "lanes: {sim: {mutants: all}}\n";
  const auto judged = [&](const std::string& policy) {
    write("policy.yaml", policy);
    return run_program({"gate", path("survived.json"), "--commit", kCommit, "--policy",
                        path("policy.yaml"), "--today", "2026-01-01"});
  };
  EXPECT_EQ(judged(demands).exit_code, 1);
  const auto accepted = judged(demands + "known_failures:\n- {mutant: " + names.front() +
                               ", reason: r, owner: o, expires: 2026-01-01}\n");
  EXPECT_EQ(accepted.exit_code, 0) << accepted.all();
}

TEST_F(GateVerb, refuses_two_reports_of_one_lane_and_selects_lanes_by_name) {
  Json mpi = Json::parse(report());
  mpi["lane"] = "mpi";
  write("mpi.json", mpi);
  const auto twice = gate("report.json", {path("report.json")});
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_NE(twice.out.find("'sim' already has a report"), std::string::npos) << twice.out;
  EXPECT_EQ(gate("report.json", {path("mpi.json")}).exit_code, 1)
      << "the baseline has no results of the mpi lane";
  const auto wrote = run_program({"gate", path("report.json"), path("mpi.json"), "--commit",
                                  kCommit, "--write-baseline", path("baseline.json")});
  ASSERT_EQ(wrote.exit_code, 0) << wrote.all();
  EXPECT_EQ(gate("report.json", {path("mpi.json")}).exit_code, 0);
  const auto one = gate("report.json");
  EXPECT_EQ(one.exit_code, 1);
  EXPECT_NE(one.out.find("lane mpi: no report of it was given"), std::string::npos) << one.out;
  EXPECT_EQ(gate("report.json", {"--lane", "sim"}).exit_code, 0);
  EXPECT_EQ(gate("report.json", {"--lane", "sim", "--lane", "mpi"}).exit_code, 1);
  EXPECT_EQ(gate("report.json", {"--lane", "gpu"}).exit_code, 1);
  EXPECT_EQ(gate("report.json", {"--lane", "cpu"}).exit_code, 2);
}

TEST_F(GateVerb, a_refused_report_leaves_the_baseline_as_it_was) {
  const std::string before = text_of(path("baseline.json"));
  Json document = Json::parse(report());
  document["scenarios"].back()["ranks"][0]["max_delta"] = 1;
  write("spoilt.json", document);
  const auto refused = run_program({"gate", path("spoilt.json"), "--commit", kCommit,
                                    "--write-baseline", path("baseline.json")});
  EXPECT_EQ(refused.exit_code, 1) << refused.all();
  EXPECT_EQ(text_of(path("baseline.json")), before);
}

TEST_F(GateVerb, a_digest_demands_the_very_report_that_a_job_wrote) {
  const auto digest_of = [this](const std::string& name) {
    return hex(sha256_of(as_bytes(text_of(path(name)))));
  };
  Json slower = Json::parse(report());
  slower["machine"]["cpu"] = "another";
  write("slower.json", slower);
  const auto plain = gate("slower.json");
  EXPECT_EQ(plain.exit_code, 0) << plain.all();
  EXPECT_NE(plain.out.find("not known: whether all values are those of the run"),
            std::string::npos);
  const std::string digest = digest_of("report.json");
  const auto demanded = gate("report.json", {"--digest", digest});
  EXPECT_EQ(demanded.exit_code, 0) << demanded.all();
  EXPECT_EQ(demanded.out.find("not known"), std::string::npos) << demanded.out;
  const auto refused = gate("slower.json", {"--digest", digest});
  EXPECT_EQ(refused.exit_code, 1) << refused.all();
  EXPECT_NE(refused.out.find("slower.json: sha256: is " + digest_of("slower.json") +
                             ", which was not demanded"),
            std::string::npos)
      << refused.out;
  EXPECT_NE(refused.out.find("sha256 " + digest + ": none of the given reports has it"),
            std::string::npos);
  EXPECT_EQ(gate("report.json", {"--digest", digest.substr(1)}).exit_code, 2);
  const Json ruling = Json::parse(gate("report.json", {"--json", "--digest", digest}).out);
  EXPECT_EQ(ruling["reports"][0]["sha256"], digest);
  EXPECT_TRUE(ruling["not_known"].empty());
  EXPECT_EQ(Json::parse(gate("report.json", {"--json"}).out)["not_known"].size(), 1U);
}

TEST_F(GateVerb, a_baseline_is_shown_by_the_verb_that_shows_reports) {
  const auto shown = run_program({"report", path("baseline.json")});
  EXPECT_EQ(shown.exit_code, 0) << shown.all();
  EXPECT_NE(shown.out.find("lane sim: commit " + kCommit), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("  4 scenarios, 0 skipped, "), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("placements/buckets-refuse"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("refused by "), std::string::npos) << shown.out;
  EXPECT_EQ(run_program({"report", path("report.json")}).exit_code, 2) << "a report has a folder";
  EXPECT_EQ(run_program({"report", path("baseline.json"), "--annotate"}).exit_code, 2);
}

TEST_F(GateVerb, the_suggested_command_calls_a_local_program_by_its_path) {
  Json doubled = Json::parse(report());
  for (auto& result : doubled["scenarios"]) result["doubled"] = true;
  doubled["determinism"]["runs_doubled"] = doubled["scenarios"].size();
  write("doubled.json", doubled);
  fs::copy_file(REPRISE_EXE, path("reprise"));
  const std::string command = "cd '" + directory_.path() +
                              "' && PATH=. reprise gate report.json --baseline doubled.json "
                              "--commit " +
                              kCommit + " >said 2>&1";
  EXPECT_NE(std::system(command.c_str()), 0);  // NOLINT: the words are this test's own
  const std::string said = text_of(path("said"));
  EXPECT_NE(said.find("complete it: ./reprise run "), std::string::npos) << said;
  EXPECT_NE(said.find("&& ./reprise search properties "), std::string::npos) << said;
}

TEST_F(GateVerb, a_policy_is_held_against_the_reports) {
  const auto judged = [&](const std::string& policy, std::vector<std::string> more = {}) {
    write("policy.yaml", "lanes:\n  sim: " + policy + "\n");
    std::vector<std::string> words = {"gate",  path("report.json"), "--commit",
                                      kCommit, "--policy",          path("policy.yaml")};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  const auto met = judged("{scenarios: 4}");
  EXPECT_EQ(met.exit_code, 0) << met.all();
  EXPECT_NE(met.out.find("accepted\n"), std::string::npos) << met.all();
  EXPECT_NE(met.out.find("sim: 4 scenarios, "), std::string::npos) << met.all();
  EXPECT_EQ(met.out.find("baseline"), std::string::npos) << met.all();
  const Json json = Json::parse(judged("{scenarios: 4}", {"--json"}).out);
  EXPECT_EQ(json["lanes"][0]["shown"]["scenarios"], 4) << json;
  EXPECT_FALSE(json["lanes"][0].contains("demanded")) << json;
  const std::pair<std::string, std::string> rows[] = {
      {"{scenarios: 5}", "scenarios: 4 run, but the policy demands 5"},
      {"{doubled: 1}",
       "is incomplete: nothing was run twice (the policy demands 1); fix: complete it"},
      {"{property_cases: 1}", "properties: 0 random cases, but the policy demands 1"},
      {"{mutants: all}", "is incomplete: no mutant (the policy demands "},
      {"{exhaustive: [{sharding: fully_reshardable, pairs: 110889}]}",
       "0 pairs passed with fully_reshardable, but the policy demands 110,889"},
      {"{exhaustive: [{sharding: fsdp_dtensor, hsdp: true, pairs: 1}]}",
       "0 pairs passed with fsdp_dtensor hsdp, but the policy demands 1"},
      {"{scenarios: 4}\n  mpi: {skipped: 9}",
       "lane mpi: the policy demands a report of it, but none was given"},
  };
  for (const auto& [policy, says] : rows) {
    const auto refused = judged(policy);
    EXPECT_EQ(refused.exit_code, 1) << policy << refused.all();
    EXPECT_NE(refused.out.find(says), std::string::npos) << says << refused.all();
    EXPECT_NE(refused.out.find("refused: 1 reason\n"), std::string::npos) << refused.all();
  }
  write("more.yaml", std::string("lanes: {sim: {scenarios: 6}}\n"));
  const auto both = judged("{scenarios: 4}", {"--policy", path("more.yaml")});
  EXPECT_EQ(both.exit_code, 1) << both.all();
  const auto beside = judged("{scenarios: 4}", {"--baseline", path("baseline.json")});
  EXPECT_EQ(beside.exit_code, 0) << beside.all();
  EXPECT_NE(beside.out.find("sim: 4 scenarios (baseline 4)"), std::string::npos) << beside.all();
}

TEST_F(GateVerb, a_policy_that_is_none_is_refused_with_line_and_column) {
  struct Row {
    std::string text;
    std::string place;
    std::string says;
  };
  const std::string sim = "lanes:\n  sim:\n    ";
  const std::string known = "known_failures:\n";
  const std::string entry =
      known + "- {scenario: a, code: HANG, reason: r, owner: o, expires: 2026-02-20";
  const Row rows[] = {
      {"lanes: [", "1:", "not valid YAML"},
      {"- a\n", "1:1", "the policy must be a mapping"},
      {"lane: {}\n", "1:1", "the unknown key 'lane'"},
      {"lanes: {}\n", "1:8", "names no lane, so it demands nothing"},
      {"lanes:\n  smi: {}\n", "2:8", "'smi' is not a lane"},
      {"lanes:\n  sim: {}\n", "2:8", "sim demands nothing; write what its report must show"},
      {"lanes:\n  sim: {scenarios: 4}\n  mpi: {}\n", "3:8", "mpi demands nothing"},
      {"lanes:\n  sim: {}\nmore: 1\n", "3:1", "the unknown key 'more'"},
      {"lanes:\n  sim: {scenario: 3}\n", "2:9", "did you mean 'scenarios'"},
      {sim + "scenarios: many\n", "3:16", "needs a whole number under 'scenarios'"},
      {sim + "scenarios: -1\n", "3:16", "needs scenarios from 1"},
      {sim + "mutants: some\n", "3:14", "has the unknown value 'some' under 'mutants'"},
      {sim + "exhaustive: 3\n", "3:17", "needs a list under 'exhaustive'"},
      {sim + "exhaustive:\n      - {pairs: 3}\n", "4:9", "lacks 'sharding'"},
      {sim + "exhaustive:\n      - {sharding: fsdp_dtensor}\n", "4:9", "lacks 'pairs'"},
      {sim + "exhaustive:\n      - {sharding: fsdp, pairs: 3}\n", "4:20",
       "has the unknown value 'fsdp'"},
      {"known_failures: []\n", "1:1", "lacks 'lanes'"},
      {"known_failures: 3\n", "1:17", "needs a list under 'known_failures'"},
      {"lanes: {}\n" + entry + "}\n", "1:8", "names no lane"},
      {known + "- {code: HANG}\n", "2:3", "must name one scenario, one property or one mutant"},
      {known + "- {scenario: a, mutant: b}\n", "2:3", "must name one scenario"},
      {known + "- {scenario: a, cod: HANG}\n", "2:17", "the unknown key 'cod'"},
      {known + "- {scenario: a, code: HUNG}\n", "2:23", "has the unknown code 'HUNG'"},
      {known + "- {mutant: a, code: HANG}\n", "2:21", "has the unknown value 'HANG' under 'code'"},
      {known + "- {scenario: a, code: HANG, lane: cpu}\n", "2:35", "'cpu' is not a lane"},
      {known + "- {scenario: a, code: HANG}\n", "2:3", "lacks 'reason'"},
      {known + "- {scenario: a, code: HANG, reason: ''}\n", "2:37", "has nothing under 'reason'"},
      {known + "- {scenario: a, code: HANG, reason: r}\n", "2:3", "lacks 'owner'"},
      {known + "- {scenario: a, code: HANG, reason: r, owner: o}\n", "2:3", "lacks 'expires'"},
      {known + "- {scenario: a, code: HANG, reason: r, owner: o, expires: 2026-02-30}\n", "2:59",
       "needs a date such as 2026-01-31 under 'expires', not '2026-02-30'"},
      {entry + ", colour: red}\n", "2:71", "the unknown key 'colour'"},
      {entry + "}\n", "", "demands nothing: name a --baseline"},
      {sim + "exhaustive:\n      - {sharding: fsdp_dtensor, pairs: 3}\n" +
           "      - {sharding: fsdp_dtensor, pairs: 4}\n",
       "5:9", "occurs twice: fsdp_dtensor"},
  };
  for (const auto& row : rows) {
    write("policy.yaml", row.text);
    const auto result = run_program(
        {"gate", path("report.json"), "--commit", kCommit, "--policy", path("policy.yaml")});
    EXPECT_EQ(result.exit_code, 2) << row.text << result.all();
    EXPECT_NE(result.err.find(row.says), std::string::npos) << row.says << '\n' << result.all();
    if (row.place.empty()) continue;
    EXPECT_NE(result.err.find("policy.yaml:" + row.place), std::string::npos) << row.place << '\n'
                                                                              << result.all();
  }
}

TEST_F(GateVerb, the_policies_of_the_tree_can_be_read) {
  for (const char* file : {"release-policy.yaml", "weekly-policy.yaml"}) {
    const auto result = run_program({"gate", path("report.json"), "--commit", kCommit, "--policy",
                                     REPRISE_SOURCE_DIR "/reports/" + std::string(file)});
    EXPECT_EQ(result.exit_code, 1) << result.all();
    EXPECT_NE(result.out.find("the policy demands"), std::string::npos) << result.all();
  }
}

TEST_F(GateVerb, wrong_usage_and_unusable_baselines_are_exit_code_2) {
  const std::string good = path("report.json");
  Json failed = Json::parse(report());
  failed["verdict"] = "fail";
  write("failed.json", failed);
  write("cut.json", text_of(path("baseline.json")).substr(0, 100));
  write("nothing.json", Json{{"baseline_version", 2}, {"lanes", Json::object()}});
  write("lanes.yaml", std::string("lanes: {sim: {scenarios: 4}}\n"));
  struct Row {
    std::vector<std::string> words;
    std::string says;
  };
  const std::vector<Row> rows = {
      {{"gate"}, "REPORT"},
      {{"gate", good}, "--write-baseline"},
      {{"gate", good, "--baseline", path("nowhere.json")}, "nowhere.json"},
      {{"gate", good, "--baseline", path("cut.json")}, "the baseline is unusable: is cut off"},
      {{"gate", good, "--baseline", path("nothing.json")}, "demands nothing"},
      {{"gate", good, "--baseline", path("failed.json")}, "is not a report of an accepted run"},
      {{"gate", good, "--baseline", good, "--commit", "main"}, "'main' is not a commit"},
      {{"gate", good, "--baseline", good, "--commit", "012345"}, "'012345' is not a commit"},
      {{"gate", good, "--policy", path("nowhere.yaml")}, "nowhere.yaml"},
      {{"gate", good, "--policy", path("lanes.yaml"), "--lane", "sim"}, "leave out --lane"},
      {{"gate", good, "--baseline", good, "--today", "2026-13-01"},
       "--today: '2026-13-01' is not a date such as 2026-01-31"},
      {{"gate", good, "--baselin", good}, "did you mean '--baseline'"},
      {{"gate", good, "--write-baseline", path("no/such/folder.json")}, "folder.json"},
  };
  for (auto row : rows) {
    const bool names_commit =
        std::find(row.words.begin(), row.words.end(), "--commit") != row.words.end();
    if (!names_commit) row.words.insert(row.words.end(), {"--commit", kCommit});
    const auto result = run_program(row.words);
    EXPECT_EQ(result.exit_code, 2) << row.says << '\n' << result.all();
    EXPECT_NE(result.err.find(row.says), std::string::npos) << row.says << '\n' << result.all();
  }
}

}  // namespace
}  // namespace reprise::test::gate_verb_test
