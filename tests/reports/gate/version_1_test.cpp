// Tests that documents of format version 1, written by earlier programs, can still be read, and
// that version 1's names are replaced by the current ones.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reports/gate/gate.hpp"
#include "reports/read_error.hpp"

namespace reprise::reports {
namespace {

using Json = nlohmann::json;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

std::string kept(const std::string& name) {
  std::ifstream file(REPRISE_SOURCE_DIR "/tests/reports/gate/version_1_" + name + ".json");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Refusal> refusals_of(const Report& report, const std::string& baseline) {
  const std::vector<Submission> submissions = {{.file = "r.json", .report = report}};
  return judge_gate(submissions, parse_baseline(baseline, "b.json"), {.commit = kCommit}).refusals;
}

TEST(Version1, old_lists_of_keys_and_codes_are_read_under_todays_names) {
  const Report report = parse_report(kept("report"), "r.json");
  const ScenarioResult& result = report.scenarios.at(0);
  EXPECT_EQ(result.ranks[0].not_stored, std::vector<std::string>{"new"});
  EXPECT_EQ(result.ranks[0].not_requested, std::vector<std::string>{"optional"});
  EXPECT_EQ(course_of(result), "ran, refused by NOT_STORED, refused by NOT_REQUESTED, continued");
  const MutantResult::By& by = report.mutants.at(0).caught_by.at(0);
  EXPECT_EQ(by.verdict, "NOT_STORED");
  EXPECT_NE(by.reason.find("also NOT_REQUESTED x 2"), std::string::npos) << by.reason;
}

TEST(Version1, a_report_is_written_again_as_one_of_today) {
  const std::string text = to_json(parse_report(kept("report"), "r.json"));
  EXPECT_EQ(Json::parse(text)["schema_version"], 2);
  EXPECT_EQ(text.find("MISSING_KEY"), std::string::npos);
  EXPECT_EQ(to_json(parse_report(text, "r.json")), text);
}

TEST(Version1, the_gate_compares_a_new_report_with_either_old_baseline) {
  const std::string today = to_json(parse_report(kept("report"), "r.json"));
  const Report report = parse_report(today, "r.json");
  for (const char* kind : {"baseline", "report"}) {
    EXPECT_TRUE(refusals_of(report, kept(kind)).empty()) << kind;
    Report other = report;
    other.scenarios[0].incarnations[1].code = "NOT_REQUESTED";
    const auto refusals = refusals_of(other, kept(kind));
    ASSERT_EQ(refusals.size(), 1U) << kind;
    EXPECT_NE(refusals[0].reason.find("the baseline has 'ran, refused by NOT_STORED"),
              std::string::npos)
        << refusals[0].reason;
  }
}

TEST(Version1, only_whole_names_of_codes_are_renamed) {
  Json document = Json::parse(kept("report"));
  document["scenarios"][0]["incarnations"][1]["code"] = "NO_MISSING_KEY_ON_LOAD";
  const Report report = parse_report(document.dump(), "r.json");
  EXPECT_EQ(report.scenarios[0].incarnations[1].code, "NO_MISSING_KEY_ON_LOAD");
}

TEST(Version1, a_document_that_names_a_version_of_today_is_not_renamed) {
  Json document = Json::parse(kept("report"));
  document["schema_version"] = 2;
  EXPECT_THROW(parse_report(document.dump(), "r.json"), ReadError);
}

TEST(Version1, what_is_malformed_is_refused_as_ever) {
  const Json whole = Json::parse(kept("report"));
  for (const char* at : {"/scenarios", "/scenarios/0", "/scenarios/0/ranks/0",
                         "/scenarios/0/incarnations/0", "/mutants/0/caught_by/0"}) {
    for (const Json& wrong : {Json(7), Json("text"), Json::array({1}), Json(nullptr)}) {
      Json document = whole;
      document[Json::json_pointer(at)] = wrong;
      EXPECT_THROW(parse_report(document.dump(), "r.json"), ReadError) << at << " " << wrong;
    }
  }
}

}  // namespace
}  // namespace reprise::reports
