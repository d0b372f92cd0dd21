// Tests that a job can pass its state directly to another job, without a checkpoint. The result
// must be the same as after saving and loading.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/job/module_worlds.hpp"

namespace reprise::sim {
namespace {

constexpr int kBefore = 4;  // steps before the handover; gradients overflow in the last one
constexpr int kAfter = 2;

std::vector<ModuleConfig> modules(const std::vector<std::string>& names) {
  std::vector<ModuleConfig> all;
  for (const auto& name : names) {
    all.push_back(module_on(name, name == "lm" ? "language-tiny" : "audio-tiny", "tp1", {0}));
  }
  return all;
}

Life through_a_store(const JobConfig& before, const SaveParts& parts, const JobConfig& after) {
  SimStore store;
  EXPECT_TRUE(saved_on(store, before, kBefore, parts).ended_well());
  JobConfig fresh = after;
  fresh.training.seed = 99;
  return resumed_on(store, fresh, kAfter);
}

Life without_a_store(const JobConfig& before, const JobConfig& after) {
  SimStore store;
  World world({.world_size = 1}, store);
  Life life{.records = std::vector<std::vector<StepRecord>>(1)};
  std::unique_ptr<TrainingJob> job;
  world.run([&](Ports& ports, GlobalRank) {
    TrainingJob old(before, ports.fabric);
    for (int i = 0; i < kBefore; ++i) old.step();
    job = std::make_unique<TrainingJob>(after, ports.fabric, std::move(old));
    for (int i = 0; i < kAfter; ++i) life.records[0].push_back(job->step());
  });
  const StateDict dict = job->model_space();
  const RankState rank{{0}, &dict};
  life.state = assemble({&rank, 1}, life.findings);
  return life;
}

/// Returns the objects that contain random streams, by key.
Dict streams_of(const GlobalState& state) {
  Dict streams;
  for (const auto& object : state.objects) {
    if (is_random(object.key)) streams.emplace_back(object.key, object.value);
  }
  return streams;
}

void expect_same(const Life& stored, const Life& went_on) {
  ASSERT_TRUE(stored.ended_well()) << stored.why();
  EXPECT_EQ(first_difference(went_on.state, stored.state), "");
  EXPECT_EQ(went_on.records, stored.records);
  EXPECT_EQ(Value(streams_of(went_on.state)), Value(streams_of(stored.state)));
}

TEST(GoesOn, each_choice_of_what_a_load_leaves_behind_is_as_by_a_store) {
  int choices = 0;
  for (unsigned bits = 0; bits < 16; ++bits) {
    const auto bit = [bits](unsigned i) { return (bits >> i & 1U) != 0; };
    const LoadChoice choice{
        .optimizer = bit(0), .schedule = bit(1), .random = bit(2), .finetune = bit(3)};
    for (const auto* sharding : {"fully_reshardable", "dp_reshardable"}) {
      SCOPED_TRACE(std::to_string(bits) + " " + sharding);
      JobConfig config = job_of(modules({"a", "lm"}));
      for (auto& module : config.makeup.modules)
        module.optimizer_sharding = sharding_named(sharding);
      JobConfig next = config;
      next.load = choice;
      expect_same(through_a_store(config, {}, next), without_a_store(config, next));
      ++choices;
    }
  }
  EXPECT_EQ(choices, 32);
}

TEST(GoesOn, a_save_without_the_optimizer_is_as_a_load_that_leaves_it) {
  const JobConfig config = job_of(modules({"a", "lm"}));
  JobConfig next = config;
  next.load.optimizer = false;
  expect_same(through_a_store(config, {.optimizer = false}, config), without_a_store(config, next));
}

TEST(GoesOn, as_one_model_too) {
  JobConfig config;
  config.makeup.model = "moe-tiny";
  config.training.seed = 7;
  for (const bool optimizer : {true, false}) {
    JobConfig next = config;
    next.load.optimizer = optimizer;
    expect_same(through_a_store(config, {}, next), without_a_store(config, next));
  }
}

TEST(GoesOn, modules_that_are_added_and_dropped_are_as_by_a_store) {
  struct Row {
    std::vector<std::string> from;
    std::vector<std::string> to;
    LoadChoice choice;
  };
  const std::vector<Row> rows = {
      {{"a"}, {"a", "b"}, {.adds = {"b"}}},
      {{"a", "lm"}, {"a"}, {.drops = {"lm"}}},
      {{"a", "lm"}, {"lm", "b"}, {.adds = {"b"}, .drops = {"a"}}},
      {{"a", "lm"}, {"lm", "b"}, {.schedule = false, .adds = {"b"}, .drops = {"a"}}},
      {{"a"}, {"a", "b"}, {.optimizer = false, .adds = {"b"}}},
      {{"a"}, {"a", "b"}, {.finetune = true, .adds = {"b"}}},
      {{"a", "lm"}, {"lm", "a"}, {}},
  };
  for (const auto& row : rows) {
    JobConfig next = job_of(modules(row.to));
    next.load = row.choice;
    SCOPED_TRACE(to_string(next.makeup.modules));
    const JobConfig before = job_of(modules(row.from));
    expect_same(through_a_store(before, {}, next), without_a_store(before, next));
  }
}

TEST(GoesOn, a_module_frozen_or_thawed_on_the_way_goes_on_as_via_a_store) {
  const JobConfig trained = job_of(modules({"a", "lm"}));
  JobConfig frozen = trained;
  frozen.makeup.modules[0].frozen = true;
  expect_same(through_a_store(frozen, {}, frozen), without_a_store(frozen, frozen));
  JobConfig thawed = trained;
  thawed.load.optimizer = false;
  expect_same(through_a_store(frozen, {}, thawed), without_a_store(frozen, thawed));
}

}  // namespace
}  // namespace reprise::sim
