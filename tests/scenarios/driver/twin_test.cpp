// One uninterrupted job for all ranks and scenarios that train alike.

#include "scenarios/driver/twin.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace reprise::driver {
namespace {

sim::JobConfig config(std::uint64_t seed = 7) {
  sim::JobConfig config;
  config.seed = seed;
  return config;
}

/// A job trained by itself.
GlobalState trained(const sim::JobConfig& config, std::int64_t steps) {
  sim::SoloFabric fabric;
  sim::TrainingJob job(config, fabric);
  for (std::int64_t i = 0; i < steps; ++i) job.step();
  const StateDict state = job.model_space();
  const RankState rank{GlobalRank{0}, &state};
  Rulings rulings;
  return assemble({&rank, 1}, rulings);
}

void expect_same(const GlobalState& a, const GlobalState& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].key, b.tensors[i].key);
    EXPECT_EQ(a.tensors[i].data, b.tensors[i].data) << a.tensors[i].key;
  }
  EXPECT_EQ(a.common, b.common);
}

TEST(Twin, has_the_state_of_a_job_that_trained_so_far) {
  Twin twin(config());
  expect_same(*twin.state(Step{3}), trained(config(), 3));
  expect_same(*twin.state(Step{0}), trained(config(), 0));
  expect_same(*twin.state(Step{5}), trained(config(), 5));
}

TEST(Twin, keeps_states_and_records_and_trains_again_only_for_a_state_that_it_did_not_keep) {
  Twin twin(config());
  const auto three = twin.state(Step{3});
  twin.state(Step{6});
  EXPECT_EQ(twin.steps_trained(), 6);
  EXPECT_EQ(twin.state(Step{3}), three) << "the very same";
  const sim::StepRecord record = twin.record(Step{2});
  EXPECT_EQ(record.step, Step{2});
  EXPECT_EQ(twin.steps_trained(), 6);
  twin.state(Step{4});
  EXPECT_EQ(twin.steps_trained(), 10) << "from the start";
  EXPECT_EQ(twin.record(Step{2}), record);
  twin.record(Step{8});
  EXPECT_EQ(twin.steps_trained(), 14) << "from where it was";
}

TEST(Twin, forgets_the_states_that_were_not_asked_for_for_the_longest_time) {
  Twin twin(config());
  const std::weak_ptr<const GlobalState> first = twin.state(Step{0});
  const std::weak_ptr<const GlobalState> second = twin.state(Step{1});
  for (std::size_t i = 2; i < Twin::kStatesKept; ++i) {
    twin.state(Step{static_cast<std::int64_t>(i)});
  }
  twin.state(Step{0});
  twin.state(Step{100});
  EXPECT_FALSE(first.expired());
  EXPECT_TRUE(second.expired());
}

TEST(TwinBook, has_one_twin_for_all_that_train_alike_whatever_their_layout_and_name) {
  TwinBook book;
  const auto twin = book.twin(config());
  sim::JobConfig other = config();
  other.layout = sim::parse_layout("tp2 dp2");
  other.run = "another";
  EXPECT_EQ(book.twin(other), twin);
  EXPECT_NE(book.twin(config(8)), twin);
  sim::JobConfig schedule = config();
  schedule.schedule.max_lr *= 2;
  EXPECT_NE(book.twin(schedule), twin);
  EXPECT_EQ(book.twin(config()), twin) << "still known";
}

TEST(TwinBook, forgets_the_twin_that_was_not_asked_for_for_the_longest_time) {
  TwinBook book;
  const std::weak_ptr<Twin> first = book.twin(config(0));
  for (std::size_t seed = 1; seed <= TwinBook::kTwinsKept; ++seed) book.twin(config(seed));
  EXPECT_TRUE(first.expired());
}

TEST(TwinBook, answers_threads_alike_and_trains_once_for_all) {
  TwinBook book;
  std::vector<std::shared_ptr<const GlobalState>> states(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < states.size(); ++i) {
    threads.emplace_back([&, i] {
      for (std::int64_t step = 1; step <= 4; ++step) book.twin(config())->record(Step{step});
      states[i] = book.twin(config())->state(Step{4});
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& state : states) EXPECT_EQ(state, states[0]);
  EXPECT_EQ(book.twin(config())->steps_trained(), 4);
}

}  // namespace
}  // namespace reprise::driver
