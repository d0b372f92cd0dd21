// Tests that all ranks are compared with the same uninterrupted job, and that scenarios with the
// same training share that job.

#include "driver/record/reference_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace reprise::driver {
namespace {

sim::JobConfig config(std::uint64_t seed = 7) {
  sim::JobConfig config;
  config.training.seed = seed;
  return config;
}

/// Returns the state of a job that trained alone on one rank.
GlobalState trained(const sim::JobConfig& config, std::int64_t steps) {
  SoloFabric fabric;
  sim::TrainingJob job(config, fabric);
  for (std::int64_t i = 0; i < steps; ++i) job.step();
  const StateDict state = job.model_space();
  const RankState rank{GlobalRank{0}, &state};
  judged::Findings findings;
  return assemble({&rank, 1}, findings);
}

void expect_same(const GlobalState& a, const GlobalState& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].key, b.tensors[i].key);
    EXPECT_EQ(a.tensors[i].data, b.tensors[i].data) << a.tensors[i].key;
  }
  EXPECT_EQ(a.common, b.common);
}

TEST(ReferenceRun, has_the_state_of_a_job_that_trained_so_far) {
  ReferenceRun reference(config());
  expect_same(*reference.state(Step{3}), trained(config(), 3));
  expect_same(*reference.state(Step{0}), trained(config(), 0));
  expect_same(*reference.state(Step{5}), trained(config(), 5));
}

TEST(ReferenceRun, keeps_states_and_records_and_trains_again_only_if_needed) {
  ReferenceRun reference(config());
  const auto three = reference.state(Step{3});
  reference.state(Step{6});
  EXPECT_EQ(reference.steps_trained(), 6);
  EXPECT_EQ(reference.state(Step{3}), three) << "the same object";
  const sim::StepRecord record = reference.record(Step{2});
  EXPECT_EQ(record.step, Step{2});
  EXPECT_EQ(reference.steps_trained(), 6);
  reference.state(Step{4});
  EXPECT_EQ(reference.steps_trained(), 10) << "from the start";
  EXPECT_EQ(reference.record(Step{2}), record);
  reference.record(Step{8});
  EXPECT_EQ(reference.steps_trained(), 14) << "from where it was";
}

TEST(ReferenceRun, forgets_the_least_recently_used_states) {
  ReferenceRun reference(config());
  const std::weak_ptr<const GlobalState> first = reference.state(Step{0});
  const std::weak_ptr<const GlobalState> second = reference.state(Step{1});
  for (std::size_t i = 2; i < ReferenceRun::kStatesKept; ++i) {
    reference.state(Step{static_cast<std::int64_t>(i)});
  }
  reference.state(Step{0});
  reference.state(Step{100});
  EXPECT_FALSE(first.expired());
  EXPECT_TRUE(second.expired());
}

// --- jobs whose configuration changes -----------------------------------------------------------

sim::JobConfig modules_config(const std::vector<std::string>& names) {
  sim::JobConfig config;
  config.training.seed = 7;
  for (const auto& name : names) {
    config.makeup.modules.push_back({.name = name, .model = "audio-tiny", .ranks = {{0}}});
  }
  return config;
}

/// Trains a job of one rank for `at` steps with the config `first`, then for `steps` more steps
/// with the config `next`. Returns the job's state.
GlobalState turned(const sim::JobConfig& first, std::int64_t at, const sim::JobConfig& next,
                   std::int64_t steps) {
  SoloFabric fabric;
  sim::TrainingJob before(first, fabric);
  for (std::int64_t i = 0; i < at; ++i) before.step();
  sim::TrainingJob job(next, fabric, std::move(before));
  for (std::int64_t i = 0; i < steps; ++i) job.step();
  const StateDict state = job.model_space();
  const RankState rank{GlobalRank{0}, &state};
  judged::Findings findings;
  return assemble({&rank, 1}, findings);
}

TEST(ReferenceRun, that_begins_where_another_stood_goes_on_from_there) {
  sim::JobConfig next = modules_config({"a", "b"});
  next.load.schedule = false;
  const auto before = std::make_shared<ReferenceRun>(modules_config({"a", "b"}));
  ReferenceRun reference(next, {before, Step{3}});
  expect_same(*reference.state(Step{3}), turned(modules_config({"a", "b"}), 3, next, 0));
  expect_same(*reference.state(Step{5}), turned(modules_config({"a", "b"}), 3, next, 2));
  EXPECT_EQ(reference.record(Step{4}).step, Step{4}) << "the first step of the next job";
  EXPECT_EQ(reference.record(Step{4}).lr, next.training.schedule.lr())
      << "its schedule starts over";
}

TEST(ReferenceRun, of_a_finetune_begins_at_iteration_0) {
  sim::JobConfig next = modules_config({"a"});
  next.load.finetune = true;
  const auto before = std::make_shared<ReferenceRun>(modules_config({"a"}));
  ReferenceRun reference(next, {before, Step{4}});
  expect_same(*reference.state(Step{0}), turned(modules_config({"a"}), 4, next, 0));
  EXPECT_EQ(reference.record(Step{1}).step, Step{1});
  expect_same(*reference.state(Step{2}), turned(modules_config({"a"}), 4, next, 2));
}

TEST(ReferenceRun, takes_modules_that_are_added_and_drops_those_that_go) {
  sim::JobConfig next = modules_config({"b", "c"});
  next.load.adds = {"c"};
  next.load.drops = {"a"};
  const auto before = std::make_shared<ReferenceRun>(modules_config({"a", "b"}));
  ReferenceRun reference(next, {before, Step{2}});
  const auto state = reference.state(Step{2});
  const auto old = before->state(Step{2});
  const auto fresh = ReferenceRun(modules_config({"b", "c"})).state(Step{0});
  for (const auto& tensor : state->tensors) {
    const bool kept = tensor.key.find("mimo.b.") != std::string::npos;
    const auto& from = kept ? *old : *fresh;
    EXPECT_TRUE(tensor.data == from.tensor(tensor.key)->data) << tensor.key;
  }
  EXPECT_EQ(state->tensor("mimo.a.embedder.weight"), nullptr);
  expect_same(*reference.state(Step{4}), turned(modules_config({"a", "b"}), 2, next, 2));
}

bool differ(const GlobalState& a, const GlobalState& b) {
  return !std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                     [](const auto& one, const auto& other) { return one.data == other.data; });
}

TEST(ReferenceRun, follows_several_turns_and_repeats_them_for_an_older_state) {
  sim::JobConfig one = modules_config({"a", "b"});
  one.load.optimizer = false;
  sim::JobConfig two = modules_config({"a", "b"});
  two.load.schedule = false;
  const auto first = std::make_shared<ReferenceRun>(modules_config({"a", "b"}));
  const auto second = std::make_shared<ReferenceRun>(one, ReferenceStart{first, Step{2}});
  ReferenceRun third(two, {second, Step{4}});
  const auto five = third.state(Step{5});
  third.record(Step{7});
  const auto four = third.state(Step{4});
  expect_same(*third.state(Step{5}), *five);
  EXPECT_TRUE(differ(*four, *five));
  EXPECT_TRUE(differ(*first->state(Step{5}), *five)) << "turns count";
}

TEST(ReferenceRun, what_the_one_before_does_later_does_not_change_it) {
  sim::JobConfig next = modules_config({"a"});
  next.load.optimizer = false;
  const auto before = std::make_shared<ReferenceRun>(modules_config({"a"}));
  ReferenceRun reference(next, {before, Step{2}});
  const auto early = reference.state(Step{3});
  const auto nine = before->state(Step{9});
  expect_same(*reference.state(Step{3}), *early);
  expect_same(*before->state(Step{9}), *nine);
  reference.state(Step{5});
  expect_same(*reference.state(Step{2}), turned(modules_config({"a"}), 2, next, 0));
}

TEST(ReferenceRuns, tells_starts_apart_and_counts_a_loads_choice_only_after_one) {
  ReferenceRuns book;
  const auto plain = book.get(modules_config({"a"}));
  sim::JobConfig other = modules_config({"a"});
  other.load.optimizer = false;
  EXPECT_EQ(book.get(other), plain) << "a fresh job loads nothing";
  const ReferenceStart start{plain, Step{2}};
  const auto turned_so = book.get(other, start);
  EXPECT_NE(turned_so, plain);
  EXPECT_EQ(book.get(other, start), turned_so);
  EXPECT_NE(book.get(other, {plain, Step{3}}), turned_so);
  EXPECT_NE(book.get(modules_config({"a"}), start), turned_so) << "another choice";
  EXPECT_NE(book.get(other, {turned_so, Step{2}}), turned_so);
}

TEST(ReferenceRuns, tells_modules_apart_but_not_where_they_stand) {
  ReferenceRuns book;
  const auto reference = book.get(modules_config({"a", "b"}));
  sim::JobConfig elsewhere = modules_config({"a", "b"});
  elsewhere.makeup.modules[0].layout = sim::parse_layout("tp2 dp2");
  elsewhere.makeup.modules[0].ranks = {};
  elsewhere.makeup.modules[1].ranks = {{4}};
  EXPECT_EQ(book.get(elsewhere), reference);
  EXPECT_NE(book.get(modules_config({"a", "c"})), reference);
  EXPECT_NE(book.get(modules_config({"a"})), reference);
  sim::JobConfig frozen = modules_config({"a", "b"});
  frozen.makeup.modules[0].frozen = true;
  EXPECT_NE(book.get(frozen), reference);
  sim::JobConfig scaled = modules_config({"a", "b"});
  scaled.makeup.modules[1].loss_scale.scale = 2;
  EXPECT_NE(book.get(scaled), reference);
  sim::JobConfig clipped = modules_config({"a", "b"});
  clipped.training.clip_grad = 1;
  EXPECT_NE(book.get(clipped), reference);
}

TEST(ReferenceRuns, has_one_reference_run_for_all_jobs_that_train_alike) {
  ReferenceRuns book;
  const auto reference = book.get(config());
  sim::JobConfig other = config();
  other.makeup.layout = sim::parse_layout("tp2 dp2");
  other.identity.run = "another";
  EXPECT_EQ(book.get(other), reference);
  EXPECT_NE(book.get(config(8)), reference);
  sim::JobConfig schedule = config();
  schedule.training.schedule.max_lr *= 2;
  EXPECT_NE(book.get(schedule), reference);
  EXPECT_EQ(book.get(config()), reference) << "still known";
}

TEST(ReferenceRuns, forgets_the_reference_run_that_was_not_used_for_longest) {
  ReferenceRuns book;
  const std::weak_ptr<ReferenceRun> first = book.get(config(0));
  for (std::size_t seed = 1; seed <= ReferenceRuns::kReferencesKept; ++seed) book.get(config(seed));
  EXPECT_TRUE(first.expired());
}

TEST(ReferenceRuns, answers_threads_alike_and_trains_once_for_all) {
  ReferenceRuns book;
  std::vector<std::shared_ptr<const GlobalState>> states(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < states.size(); ++i) {
    threads.emplace_back([&, i] {
      for (std::int64_t step = 1; step <= 4; ++step) book.get(config())->record(Step{step});
      states[i] = book.get(config())->state(Step{4});
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& state : states) EXPECT_EQ(state, states[0]);
  EXPECT_EQ(book.get(config())->steps_trained(), 4);
}

}  // namespace
}  // namespace reprise::driver
