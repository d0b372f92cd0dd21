// Compares what samplers of several kinds give to a resumed job with what they give to an
// uninterrupted one. A correct sampler must never fail.
#include "driver/witness/sample_judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace reprise::driver {
namespace {

using ::testing::HasSubstr;
using Samples = std::vector<std::int64_t>;

constexpr std::int64_t kDataset = 22;

/// A sampler like torch's DistributedSampler: shuffles each epoch by its number, pads the epoch so
/// that all ranks get as many samples, and deals them out.
struct Sampler {
  std::int64_t ranks = 2;
  std::int64_t batch = 2;  ///< of one rank
  bool shuffles = true;
  bool by_ranks = false;  ///< true if the order depends on the number of ranks

  Samples epoch(std::int64_t number) const {
    Samples order(kDataset);
    std::iota(order.begin(), order.end(), 0);
    if (shuffles) {
      const std::int64_t key = number * 31 + (by_ranks ? ranks : 0);
      std::sort(order.begin(), order.end(), [key](auto a, auto b) {
        const auto mixed = [key](std::int64_t n) { return (n + 7) * (key * 13 + 17) % 101; };
        return std::pair(mixed(a), a) < std::pair(mixed(b), b);
      });
    }
    for (std::size_t i = 0; static_cast<std::int64_t>(order.size()) % ranks != 0; ++i) {
      order.push_back(order[i]);
    }
    return order;
  }
};

/// The data stream of a job: an endless sequence of epochs, cut into steps.
class Stream {
 public:
  explicit Stream(const Sampler& sampler) : sampler_(sampler), epoch_(sampler.epoch(0)) {}

  /// Goes on with another number of ranks at the same sample.
  Stream& with(const Sampler& sampler) {
    sampler_ = sampler;
    epoch_ = sampler.epoch(number_);
    return *this;
  }
  /// Returns the samples of one step, by rank.
  std::vector<Samples> step() {
    if (at_ >= epoch_.size()) {
      epoch_ = sampler_.epoch(++number_);
      at_ = 0;
    }
    std::vector<Samples> taken(static_cast<std::size_t>(sampler_.ranks));
    for (std::int64_t i = 0; i < sampler_.batch * sampler_.ranks && at_ < epoch_.size(); ++i) {
      taken[static_cast<std::size_t>(i % sampler_.ranks)].push_back(epoch_[at_++]);
    }
    return taken;
  }

 private:
  Sampler sampler_;
  Samples epoch_;
  std::size_t at_ = 0;
  std::int64_t number_ = 0;
};

/// Returns a life that takes these samples. Each is reported by `copies` ranks.
LifeEvidence life_of(const ProgramLife& plan, std::int64_t first,
                     const std::vector<std::vector<Samples>>& steps, std::size_t copies = 1) {
  LifeEvidence life{.plan = plan};
  for (const auto& taken : steps) {
    life.ranks.resize(taken.size() * copies);
    for (std::size_t rank = 0; rank < life.ranks.size(); ++rank) {
      life.ranks[rank].steps.push_back({.step = first, .samples = taken[rank / copies]});
    }
    ++first;
  }
  return life;
}

std::vector<std::vector<Samples>> take(Stream& stream, int steps) {
  std::vector<std::vector<Samples>> taken;
  for (int i = 0; i < steps; ++i) taken.push_back(stream.step());
  return taken;
}

/// A job in two lives. The second begins at step `saved` + 1.
struct Job {
  Sampler before = {};
  Sampler after = {};
  int saved = 4;
  int trained = 14;  ///< steps of the second life
  std::map<std::string, std::int64_t> layout_before = {{"dp", 2}};
  std::map<std::string, std::int64_t> layout_after = {{"dp", 2}};
  std::size_t copies_before = 1;
  std::size_t copies_after = 1;
  int forgets = 0;  ///< number of steps by which the second life goes back in its data

  Findings judged(const std::function<void(std::vector<LifeEvidence>&)>& spoil = {}) const {
    Stream whole(before);
    const LifeEvidence uninterrupted =
        life_of({.layout = layout_before}, 1, take(whole, saved + trained), copies_before);
    Stream first(before);
    std::vector<LifeEvidence> lives = {
        life_of({.layout = layout_before}, 1, take(first, saved), copies_before)};
    Stream second(before);
    take(second, saved - forgets);
    second.with(after);
    lives.push_back(
        life_of({.layout = layout_after}, saved + 1, take(second, trained), copies_after));
    if (spoil) spoil(lives);
    Findings found;
    judge_samples(lives, uninterrupted, found);
    return found;
  }
};

bool fails(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.fails(); });
}

TEST(SampleJudge, LetsAJobPassOverItsDataManyTimes) {
  for (const bool shuffles : {false, true}) {
    Job job;
    job.before.shuffles = job.after.shuffles = shuffles;
    EXPECT_TRUE(job.judged().empty());
  }
}

TEST(SampleJudge, LetsASamplerPadItsLastBatch) {
  Job job;
  job.before = job.after = {.ranks = 4, .batch = 1};  // 22 samples, and 2 of them again
  job.layout_before = job.layout_after = {{"dp", 4}};
  EXPECT_TRUE(job.judged().empty());
}

TEST(SampleJudge, LetsRanksOfOneModelTellTheSameSamples) {
  Job job;
  job.copies_before = job.copies_after = 2;
  job.layout_before = job.layout_after = {{"dp", 2}, {"tp", 2}};
  EXPECT_TRUE(job.judged().empty());
  job.copies_after = 1;  // the second life runs without tensor parallelism
  job.layout_after = {{"dp", 2}, {"tp", 1}};
  EXPECT_TRUE(job.judged().empty());
}

TEST(SampleJudge, NeverFailsACorrectSamplerAtAnotherNumberOfRanks) {
  for (const std::int64_t ranks : {1, 2, 3, 4, 8}) {
    for (const std::int64_t batch : {1, 2, 4}) {
      for (const bool by_ranks : {false, true}) {
        for (int saved = 1; saved <= 12; ++saved) {
          Job job;
          job.before.by_ranks = by_ranks;
          job.after = {.ranks = ranks, .batch = batch, .by_ranks = by_ranks};
          job.layout_after = {{"dp", ranks}};
          job.saved = saved;
          if (ranks == 2 && batch != 2) continue;    // another job, and no other layout
          if (by_ranks && saved % 6 != 0) continue;  // such a sampler can change at an epoch alone
          const auto findings = job.judged();
          EXPECT_FALSE(fails(findings)) << ranks << " ranks, batches of " << batch << ", saved at "
                                        << saved << ": " << findings.front().text;
        }
      }
    }
  }
}

TEST(SampleJudge, PassesAnotherNumberOfRanksWithTheSameStream) {
  Job job;
  job.after = {.ranks = 1, .batch = 2};  // steps of half as many samples
  job.layout_after = {{"dp", 1}};
  EXPECT_TRUE(job.judged().empty());
}

TEST(SampleJudge, FindsAPositionThatIsLostAtAnyNumberOfRanks) {
  for (const std::int64_t ranks : {1, 2, 4}) {
    for (const int saved : {3, 4, 9}) {
      Job job;
      job.after = {.ranks = ranks, .batch = 2};
      job.layout_after = {{"dp", ranks}};
      job.saved = saved;
      job.forgets = 3;
      const auto findings = job.judged();
      ASSERT_FALSE(findings.empty());
      EXPECT_TRUE(fails(findings))
          << ranks << " ranks, saved at " << saved << ": " << findings.front().text;
      EXPECT_EQ(findings.front().code, judged::kDataStreamSkip);
      EXPECT_TRUE(findings.front().step.has_value());
    }
  }
}

TEST(SampleJudge, NamesTheStepAndTheSampleThatIsTakenTwice) {
  Job job;
  job.before.shuffles = job.after.shuffles = false;
  const auto findings = job.judged([](std::vector<LifeEvidence>& lives) {
    lives[1].ranks[0].steps[0].samples[0] = 14;  // was taken in step 4
  });
  ASSERT_FALSE(findings.empty());
  EXPECT_TRUE(fails(findings));
  EXPECT_THAT(findings.front().text, HasSubstr("sample 14 is taken in step 4 and again in step 5"));
}

TEST(SampleJudge, NamesTheStepAndTheSampleThatIsLeftOut) {
  Job job;
  job.before.shuffles = job.after.shuffles = false;
  const auto findings = job.judged(
      [](std::vector<LifeEvidence>& lives) { lives[1].ranks[1].steps[1].samples.pop_back(); });
  ASSERT_FALSE(findings.empty());
  EXPECT_TRUE(fails(findings));
  EXPECT_THAT(findings.front().text, HasSubstr("is left out of step 6"));
}

TEST(SampleJudge, FindsAPaddedSampleThatTheUninterruptedRunDoesNotTake) {
  Job job;
  const auto findings = job.judged([](std::vector<LifeEvidence>& lives) {
    auto& samples = lives[1].ranks[1].steps[1].samples;
    samples.push_back(samples.front());
  });
  ASSERT_FALSE(findings.empty());
  EXPECT_TRUE(fails(findings));
  EXPECT_THAT(findings.front().text, HasSubstr("2 times in step 6"));
}

TEST(SampleJudge, NamesTheStepOfWhichAnotherTakesTheSamples) {
  Job job;
  job.after = {.ranks = 1, .batch = 4};  // as many samples in a step
  job.layout_after = {{"dp", 1}};
  job.forgets = 2;
  const auto findings = job.judged();
  ASSERT_FALSE(findings.empty());
  EXPECT_TRUE(fails(findings));
  EXPECT_THAT(findings.front().text, HasSubstr("is left out of step 5, which takes what the "
                                               "uninterrupted run takes in step 3"));
}

TEST(SampleJudge, DoubtsAnotherOrderAtAnotherNumberOfRanks) {
  Job job;
  job.before.by_ranks = true;
  job.after = {.ranks = 4, .batch = 1, .by_ranks = true};
  job.layout_after = {{"dp", 4}};
  job.saved = 6;  // at the end of an epoch
  const auto findings = job.judged();
  ASSERT_FALSE(findings.empty());
  EXPECT_FALSE(fails(findings));
  EXPECT_THAT(findings.front().text, HasSubstr("this may be the sampler's padding or order"));
}

TEST(SampleJudge, SaysThatItCannotJudgeAxesOfUnknownNames) {
  Job job;
  job.copies_after = 2;
  job.layout_before = {{"blue", 2}};
  job.layout_after = {{"blue", 4}};
  const auto findings = job.judged();
  ASSERT_FALSE(findings.empty());
  EXPECT_FALSE(fails(findings));
  EXPECT_THAT(findings.front().text, HasSubstr("name the axes of data parallelism dp"));
}

}  // namespace
}  // namespace reprise::driver
