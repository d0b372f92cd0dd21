// Tests what is shown by a scenario that a deadline ended once.
#include "driver/programs/second_try.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "driver/programs/program_life.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;
using ::testing::HasSubstr;

reports::ScenarioResult result_of(Verdict verdict, const std::string& code = "",
                                  const std::string& reason = "") {
  reports::ScenarioResult result{.name = "s", .verdict = verdict, .code = code, .reason = reason};
  if (verdict != Verdict::kPass) result.failure = reports::Failure{.cause = reason, .life = 1};
  return result;
}

ProgramTry ended_at_its_deadline(bool progressing) {
  ProgramTry first{.result = result_of(progressing ? Verdict::kInconclusive : Verdict::kFail,
                                       "HANG", "life 1: rank 0 did not finish within 2 s"),
                   .at_deadline = true,
                   .progressing = progressing};
  first.result.seconds = 2.5;
  return first;
}

TEST(SecondTry, PassesAfterATryThatWasOnlySlow) {
  const auto result = with_second_try(ended_at_its_deadline(true), result_of(Verdict::kPass));
  EXPECT_EQ(result.verdict, Verdict::kPass);
  EXPECT_EQ(result.diagnosis, "passed on its second try");
  ASSERT_EQ(result.earlier_tries.size(), 1U);
  EXPECT_EQ(result.earlier_tries[0].code, "HANG");
  EXPECT_EQ(result.earlier_tries[0].reason, "life 1: rank 0 did not finish within 2 s");
  EXPECT_EQ(result.earlier_tries[0].seconds, 2.5);
}

TEST(SecondTry, IsInconclusiveAfterATryThatMayHaveHung) {
  const auto result = with_second_try(ended_at_its_deadline(false), result_of(Verdict::kPass));
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(result.code, "HANG");
  EXPECT_EQ(
      result.reason,
      "passed on its second try, and may hang at times: life 1: rank 0 did not finish within 2 s");
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->life, 1U) << "the place of the first";
  EXPECT_EQ(result.earlier_tries.size(), 1U);
}

TEST(SecondTry, ShowsTheSecondIfItDoesNotPassEither) {
  for (const bool progressing : {false, true}) {
    const auto result = with_second_try(ended_at_its_deadline(progressing),
                                        result_of(Verdict::kFail, "LOST_OBJECT", "lost"));
    EXPECT_EQ(result.verdict, Verdict::kFail);
    EXPECT_EQ(result.code, "LOST_OBJECT");
    EXPECT_EQ(result.earlier_tries.size(), 1U);
    EXPECT_THAT(to_block(result), HasSubstr("earlier try:  HANG: life 1: rank 0 did not"));
  }
}

TEST(ProgramLife, SaysWhyTheWitnessOfARankCannotBeRead) {
  const contracts::TemporaryDirectory directory;
  const std::string file = directory.path() + "/life0-rank0.jsonl";
  const auto said = [&file](const ProgramEnd& end) {
    LifeEvidence life;
    read_witness(file, end, life);
    EXPECT_EQ(life.ranks.size(), 1U);
    EXPECT_LE(life.unread.size(), 1U);
    if (life.unread.empty()) return std::string();
    return std::string(name_of(life.unread[0].code)) + ": " + life.unread[0].text;
  };
  EXPECT_EQ(said({}), "ORACLE_VACUOUS: life0-rank0.jsonl was not written");
  EXPECT_EQ(said({.exit_code = 1}), "") << "its exit code says enough";
  std::filesystem::create_directory(file);
  EXPECT_EQ(said({}),
            "ORACLE_VACUOUS: life0-rank0.jsonl is not a regular file, so it can't be a witness");
  std::filesystem::remove(file);
  const std::string whole = start_line(0, 0) + kDone;
  std::ofstream(file) << whole;
  EXPECT_EQ(said({}), "");
  std::ofstream(file, std::ios::app) << "{\"what\":";
  EXPECT_EQ(said({}), "TORN_FILE: life0-rank0.jsonl ends in the middle of a line");
  EXPECT_EQ(said({.exit_code = 137}), "") << "a signal ended it";
  std::ofstream(file) << "no json\n";
  EXPECT_THAT(said({}), testing::StartsWith("TORN_FILE: life0-rank0.jsonl"));
}

TEST(SilenceLimit, FollowsTheFirstLifeAndIsNeverShorterThanTheFileSays) {
  EXPECT_EQ(silence_limit(120, 0), 120);
  EXPECT_EQ(silence_limit(120, 29.9), 120);
  EXPECT_EQ(silence_limit(120, 30.1), 121);
  EXPECT_EQ(silence_limit(120, 119.9), 480) << "at most four times what the file says";
}

}  // namespace
}  // namespace reprise::driver
