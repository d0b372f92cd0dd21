#include "reports/cause.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

ScenarioResult failed(const std::string& name, const std::string& code, const std::string& cause,
                      std::int32_t world = 4) {
  ScenarioResult result{.name = name, .verdict = Verdict::kFail, .code = code, .reason = cause};
  result.failure = Failure{.cause = cause, .phase = "load"};
  result.world = world;
  return result;
}

std::vector<ScenarioResult> of_two_defects() {
  return {failed("a[k=10]", "ZERO_FILL", "rank 3: zeros stand there"),
          failed("a[k=9]", "ZERO_FILL", "rank 0: zeros stand there"),
          failed("b", "ZERO_FILL", "rank 1: zeros stand there", 2),
          failed("c", "HANG", "rank 1 waits for 2 ranks"), sample_scenario("passes")};
}

TEST(Cause, a_signature_has_no_numbers_and_no_tokens) {
  EXPECT_EQ(signature_of("TORN_FILE", "rank 3: iter_0000010.saving-0123ab/__0_1.distcp is cut"),
            "TORN_FILE: rank #: iter_#.saving-#/__#_#.distcp is cut");
}

TEST(Cause, failures_that_differ_only_in_numbers_are_one) {
  const auto results = of_two_defects();
  const auto causes = causes_of(results);
  ASSERT_EQ(causes.size(), 2U);
  EXPECT_EQ(causes[0].smallest().name, "b") << "it has the fewest ranks";
  EXPECT_EQ(causes[0].results[1]->name, "a[k=9]");
  EXPECT_EQ(causes[0].results[2]->name, "a[k=10]");
  EXPECT_EQ(causes[1].smallest().name, "c");
  EXPECT_EQ(signature_of(results[0]), "ZERO_FILL: rank #: zeros stand there, in the phase load");
}

TEST(Cause, names_of_keys_and_files_do_not_part_what_one_defect_did) {
  const std::vector<ScenarioResult> results = {
      failed("a", "TORN_SNAPSHOT", "rank 0: decoder.final_layernorm.weight[3] is of step 4"),
      failed("b", "TORN_SNAPSHOT", "rank 1: decoder.layers.0.linear_qkv.weight[3, 1] is of step 2"),
      failed("c", "TORN_SNAPSHOT", "rank 1: exp_avg.bias is of step 2 [rank 1, key exp_avg.bias]")};
  const auto causes = causes_of(results);
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(signature_of(results[0]),
            "TORN_SNAPSHOT: rank #: NAME is of step #, in the phase load");
  EXPECT_EQ(signature_of(failed("d", "IO", "It failed.")), "IO: It failed., in the phase load");
}

TEST(Cause, a_list_of_ranks_counts_as_one_number) {
  EXPECT_EQ(signature_of(failed("a", "HANG", "call #97 of group {0 1 2 3}: rank 0 waits")),
            signature_of(failed("b", "HANG", "call #2 of group {0 1}: rank 1 waits")));
  EXPECT_NE(signature_of(failed("a", "HANG", "{a b} waits")),
            signature_of(failed("b", "HANG", "{c} waits")));
}

TEST(Cause, another_phase_or_code_is_another_cause) {
  auto results = of_two_defects();
  results[0].failure->phase = "save";
  results[1].code = "STALE_BYTES";
  EXPECT_EQ(causes_of(results).size(), 4U);
}

TEST(Cause, stands_once_on_the_screen_with_the_names_of_the_others) {
  Report report = sample_report();
  report.scenarios = of_two_defects();
  const std::string table = to_table(report, 120);
  EXPECT_THAT(table, HasSubstr("b: ZERO_FILL: rank 1: zeros stand there"));
  EXPECT_THAT(table, HasSubstr("2 more scenarios fail in the same way: a[k=9], a[k=10]\n"));
  EXPECT_THAT(table, Not(HasSubstr("rank 3: zeros")));
  EXPECT_THAT(table, HasSubstr("c: HANG: rank 1 waits"));
}

}  // namespace
}  // namespace reprise::reports
