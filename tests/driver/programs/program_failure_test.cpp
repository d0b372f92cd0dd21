// Tests that what the judges of a trainer find stands in every output: all findings, and the fields
// of the first one.
#include "driver/programs/program_failure.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "driver/programs/program_run.hpp"
#include "reports/pages/pages.hpp"
#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {
namespace {

using ::testing::HasSubstr;

reports::Report report_of(const RecordedRun& run) {
  reports::Report report{.lane = reports::ReportLane::kProgram};
  auto& result = report.scenarios.emplace_back(describe_lives(run.plan, run.lives(), {}));
  result.name = result.file = "recorded";
  result.replay = "reprise run recorded.yaml";
  conclude(run.plan, run.judged(), result);
  report.verdict = result.verdict;
  return report;
}

struct FailureRow {
  const char* code;
  void (*breaks)(RecordedRun&);
  std::string key;
  std::int64_t step;
  const char* phase;
  std::string saved;
  std::string loaded;
};

void change_all(std::vector<std::string>& files, const std::string& from, const std::string& to) {
  for (auto& text : files) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
}

const std::string kCursor = R"({"key":"cursor","digest":")" + hex(std::uint64_t{2}) + "\"";

std::vector<FailureRow> rows() {
  return {
      {"LOST_OBJECT", [](RecordedRun& run) { run.stored[0].tensors.erase("b"); }, "b", 2, "store",
       "digest " + hex(digest_of_rows("b", 0, kRows, 2)), "not stored"},
      {"LOST_OBJECT", [](RecordedRun& run) { run.stored[0].objects.clear(); }, "cursor", 2, "store",
       "digest " + hex(std::uint64_t{2}), "not stored"},
      {"LOST_OBJECT",
       [](RecordedRun& run) {
         for (auto* files : {&run.files.first, &run.files.second, &run.files.control}) {
           change_all(*files, kCursor, kCursor + R"(,"value":"2")");
         }
         change_all(run.files.second, kCursor + R"(,"value":"2")",
                    R"({"key":"cursor","digest":")" + hex(std::uint64_t{7}) + R"(","value":"7")");
       },
       "cursor", 2, "load", "2", "7"},
      {"COMMIT_MISSING", [](RecordedRun& run) { run.stored.clear(); }, "", 2, "store",
       "a checkpoint of step 2", "none"},
      {"DTYPE_DRIFT", [](RecordedRun& run) { run.stored[0].tensors["w"].dtype = DType::kInt64; },
       "w", 2, "store", "int32", "int64"},
      {"SHAPE_DRIFT",
       [](RecordedRun& run) {
         run.stored[0].tensors["w"].shape = {2, 2};
       },
       "w", 2, "store", "[4]", "[2, 2]"},
      {"DATA_STREAM_SKIP",
       [](RecordedRun& run) {
         change_all(run.files.second, R"("samples":[8,9])", R"("samples":[0,1])");
       },
       "", 3, "train", "samples 8, 9, 10, 11", "samples 0, 1, 10, 11"},
  };
}

/// Expects the texts in the report, in JUnit, on the page, in the summary and on the screen.
void expect_everywhere(const reports::Report& report, const std::string& text) {
  EXPECT_THAT(to_json(report), HasSubstr(text));
  EXPECT_THAT(to_junit(report, ""), HasSubstr(text));
  EXPECT_THAT(to_html(report, ""), HasSubstr(text));
  EXPECT_THAT(to_table(report, 120), HasSubstr(text));
}

TEST(ProgramFailure, HasItsFieldsInEveryOutput) {
  for (const auto& row : rows()) {
    RecordedRun run;
    row.breaks(run);
    const auto report = report_of(run);
    const auto& result = report.scenarios[0];
    SCOPED_TRACE(to_block(result));
    EXPECT_EQ(result.verdict, reports::Verdict::kFail);
    EXPECT_EQ(result.code, row.code);
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->layout, "dp2");
    EXPECT_EQ(result.failure->key, row.key);
    EXPECT_EQ(result.failure->step, row.step);
    EXPECT_EQ(result.failure->phase, row.phase);
    EXPECT_EQ(result.failure->saved, row.saved);
    EXPECT_EQ(result.failure->loaded, row.loaded);
    for (const auto& text : {result.reason, row.key, row.saved, row.loaded}) {
      expect_everywhere(report, text);
    }
    EXPECT_THAT(reports::to_summary(report, ""),
                ::testing::ContainsRegex("       phase +" + std::string(row.phase) + "\n"));
  }
}

TEST(ProgramRun, AMissedFailureFailsAndARunThatComparedNothingIsInconclusive) {
  RecordedRun run;
  reports::ScenarioResult result;
  conclude(run.plan, {}, result);
  EXPECT_EQ(result.verdict, reports::Verdict::kInconclusive);
  EXPECT_EQ(result.code, "ORACLE_VACUOUS");
  EXPECT_EQ(result.reason, "nothing was compared");
  run.plan.expect.fails = judged::kLostObject;
  conclude(run.plan, {}, result);
  EXPECT_EQ(result.verdict, reports::Verdict::kFail);
  EXPECT_EQ(result.code, "VERDICT_DISAGREEMENT");
  EXPECT_EQ(result.reason, "it should have failed with LOST_OBJECT, but nothing was found");
}

TEST(ProgramFailure, HasAllFindingsInEveryOutput) {
  constexpr int kObjects = 40;
  RecordedRun run;
  const std::string wrong = R"({"key":"cursor","digest":")" + hex(std::uint64_t{7}) + "\"";
  std::string right;
  std::string other;
  for (int i = 0; i < kObjects; ++i) {
    const std::string name = "object" + std::to_string(i) + "!";
    const std::string begin = R"(},{"key":")" + name + R"(","digest":")";
    right += begin + hex(std::uint64_t{2}) + "\"";
    other += begin + hex(std::uint64_t{7}) + "\"";
    run.stored[0].objects.insert(name);
  }
  change_all(run.files.first, kCursor + "}", kCursor + right + "}");
  change_all(run.files.second, kCursor + "}", wrong + other + "}");
  const auto report = report_of(run);
  const auto& failure = report.scenarios[0].failure;
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->key, "cursor");
  EXPECT_EQ(failure->consequences.size(), kObjects);
  EXPECT_EQ(failure->consequences_left_out, 0U);
  for (int i = 0; i < kObjects; ++i) expect_everywhere(report, "object" + std::to_string(i) + "!");
  EXPECT_THAT(reports::to_summary(report, ""), HasSubstr("more findings, in report.json"));
}

}  // namespace
}  // namespace reprise::driver
