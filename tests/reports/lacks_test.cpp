// Tests the function that lists the evidence missing from a report. It uses nothing but the report.

#include "reports/lacks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/reports/sample_report.hpp"

namespace reprise::reports {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Report plain_run() {
  Report report = sample_report();
  report.properties.clear();
  report.mutants.clear();
  run_nothing_twice(report);
  return report;
}

TEST(Lacks, a_plain_run_says_what_it_is_good_for_and_what_it_has_not) {
  EXPECT_THAT(lacks_of(plain_run()),
              ElementsAre(HasSubstr("only shows how each scenario ended when it was run once"),
                          StartsWith("determinism: nothing was run twice"),
                          AllOf(StartsWith("properties: no random case"),
                                HasSubstr("'reprise search properties --report DIR'")),
                          AllOf(StartsWith("mutants: none was switched on"),
                                HasSubstr("'reprise mutants --report DIR'"))));
}

TEST(Lacks, programs_of_others_are_not_run_twice) {
  Report report = plain_run();
  report.lane = ReportLane::kProgram;
  EXPECT_THAT(lacks_of(report), IsEmpty());
}

TEST(Lacks, a_run_with_a_mutant_does_not_say_that_none_was_switched_on) {
  Report report = plain_run();
  report.mutant = "stale-plan";
  for (const auto& line : lacks_of(report)) EXPECT_EQ(line.find("mutants:"), std::string::npos);
}

TEST(Lacks, a_full_run_lacks_nothing) { EXPECT_THAT(lacks_of(sample_report()), IsEmpty()); }

TEST(Lacks, what_is_the_simulated_lane_s_is_not_asked_of_others) {
  Report report = plain_run();
  report.lane = ReportLane::kMpi;
  EXPECT_THAT(lacks_of(report),
              ElementsAre(HasSubstr("only shows"), StartsWith("determinism: nothing")));
  report.scenarios[0].doubled = true;
  EXPECT_THAT(lacks_of(report), IsEmpty());
  report = plain_run();
  report.lane = ReportLane::kFiles;
  EXPECT_THAT(lacks_of(report), IsEmpty());
  report = plain_run();
  report.scenarios.clear();
  EXPECT_THAT(lacks_of(report), IsEmpty());
}

TEST(Lacks, what_is_added_is_no_longer_said_to_lack_and_all_else_stays) {
  Report report = plain_run();
  restate_lacks(report);
  restate_lacks(report);
  EXPECT_EQ(report.not_claimed.size(), 5U) << "it must be said only once";
  EXPECT_EQ(report.not_claimed.front(), "lane gpu: not run here");
  report.properties = sample_report().properties;
  restate_lacks(report);
  EXPECT_EQ(report.not_claimed.size(), 4U);
  report.mutants = sample_report().mutants;
  report.scenarios[0].doubled = true;
  restate_lacks(report);
  EXPECT_THAT(report.not_claimed, ElementsAre("lane gpu: not run here"));
}

TEST(Lacks, several_gpus_are_claimed_if_ranks_had_them) {
  Report report = sample_report();
  EXPECT_THAT(unshown_of_gpus(report), IsEmpty());
  report.lane = ReportLane::kGpu;
  EXPECT_THAT(unshown_of_gpus(report),
              ElementsAre("more than one GPU in one job", "data from GPU to GPU through NCCL"));
  auto& ranks = report.scenarios[0].ranks;
  ASSERT_GE(ranks.size(), 2U);
  ranks[0].gpu = RankGpu{"node0", "NVIDIA H100", "00ff", "0000:01:00", {"NET/Socket/0"}};
  ranks[1].gpu = ranks[0].gpu;
  EXPECT_THAT(unshown_of_gpus(report),
              ElementsAre("more than one GPU in one job",
                          "data from GPU to GPU by another way than sockets"));
  ranks[1].gpu->bus_id = "0000:02:00";
  ranks[1].gpu->transports = {"P2P/CUMEM"};
  EXPECT_THAT(unshown_of_gpus(report), IsEmpty());
  report.scenarios[0].verdict = Verdict::kFail;
  EXPECT_EQ(unshown_of_gpus(report).size(), 2U);
}

}  // namespace
}  // namespace reprise::reports
