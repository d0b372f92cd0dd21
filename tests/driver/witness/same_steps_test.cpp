// A program that is not deterministic must not be blamed on a load, and a wrong load must not be
// excused by it.
#include "driver/witness/same_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Changes the loss of a step on all ranks.
void put_loss(std::vector<std::string>& files, std::int64_t step, const std::string& loss) {
  for (auto& text : files) put(text, "\"0x1." + std::to_string(step) + "p+0\"", "\"" + loss + "\"");
}

/// The program draws other numbers in each run: losses and ends differ from the first step on.
RecordedRun unseeded() {
  RecordedRun run;
  for (std::int64_t step = 1; step <= 3; ++step) put_loss(run.files.first, step, "0x1.9p+0");
  put_loss(run.files.second, 3, "0x1.ap+0");
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (auto* files : {&run.files.first, &run.files.second}) {
      const auto end = (*files)[rank].find(R"("when":"end")");
      const auto digest = (*files)[rank].find("digest\":\"", end) + 9;
      (*files)[rank].replace(digest, 16, "00000000000000aa");
    }
  }
  return run;
}

TEST(SameSteps, CallsAProgramThatIsNotDeterministicInconclusive) {
  const RecordedRun run = unseeded();
  const auto findings = run.judged();
  EXPECT_EQ(first_failure(findings), nullptr) << first_failure(findings)->text;
  EXPECT_THAT(run.first(), StartsWith("NOT_DETERMINISTIC: two runs of the same steps differ: life "
                                      "0, step 1: the loss is 0x1.9p+0, and 0x1.1p+0 in the"));
}

TEST(SameSteps, StillFindsWhatTheLoadLost) {
  RecordedRun run = unseeded();
  for (auto& text : run.files.second) put(text, hex(2), hex(7));
  ASSERT_NE(first_failure(run.judged()), nullptr);
  EXPECT_EQ(first_failure(run.judged())->code, judged::kLostObject);
  RecordedRun stored = unseeded();
  stored.stored[0].tensors["w"].digest += 1;
  ASSERT_NE(first_failure(stored.judged()), nullptr);
  EXPECT_EQ(first_failure(stored.judged())->code, judged::kBitMismatch);
}

TEST(SameSteps, StillJudgesTheRateAndTheSamples) {
  RecordedRun rate = unseeded();
  for (auto& text : rate.files.second) put(text, R"("lr":"0x1p-3")", R"("lr":"0x1p-1")");
  ASSERT_NE(first_failure(rate.judged()), nullptr);
  EXPECT_THAT(first_failure(rate.judged())->text, HasSubstr("the lr is"));
  RecordedRun samples = unseeded();
  put(samples.files.second[1], "\"samples\":[10,11]", "\"samples\":[10,1]");
  ASSERT_NE(first_failure(samples.judged()), nullptr);
  EXPECT_EQ(first_failure(samples.judged())->code, judged::kDataStreamSkip);
}

TEST(SameSteps, ExcusesOtherSamplesIfASamplerIsNotSeeded) {
  RecordedRun run;
  put(run.files.first[0], "\"samples\":[0,1]", "\"samples\":[0,5]");
  EXPECT_EQ(first_failure(run.judged()), nullptr);
  EXPECT_THAT(run.first(), HasSubstr("differ: sample 1 is left out of step 1"));
}

TEST(SameSteps, BlamesADifferenceThatBeginsAfterTheLoad) {
  RecordedRun run;
  put_loss(run.files.second, 3, "0x1.ap+0");
  ASSERT_NE(first_failure(run.judged()), nullptr);
  EXPECT_EQ(first_failure(run.judged())->code, judged::kTrajectoryDivergence);
}

TEST(SameSteps, BlamesADifferenceThatBeginsAfterASave) {
  RecordedRun run;
  put_loss(run.files.first, 3, "0x1.ap+0");
  ASSERT_NE(first_failure(run.judged()), nullptr);
  EXPECT_THAT(first_failure(run.judged())->text, HasSubstr("life 0, step 3"));
}

TEST(SameSteps, IsSettledByASecondUninterruptedRun) {
  RecordedRun run;
  put_loss(run.files.second, 3, "0x1.ap+0");
  const LifeEvidence first = evidence_of(run.plan.lives[0], run.files.control);
  auto again = run.files.control;
  EXPECT_TRUE(other_course(first, evidence_of(run.plan.lives[0], again)).empty());
  put_loss(again, 3, "0x1.bp+0");
  const auto differences = other_course(first, evidence_of(run.plan.lives[0], again));
  ASSERT_FALSE(differences.empty());
  auto findings = run.judged();
  settle_other_course(differences, findings);
  EXPECT_EQ(first_failure(findings), nullptr);
  EXPECT_THAT(findings.front().text, HasSubstr("in a second uninterrupted run"));
}

}  // namespace
}  // namespace reprise::driver
