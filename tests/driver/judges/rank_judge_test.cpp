// Tests what a rank rules on itself: a load of something else than what was saved, and a save of
// something else than what the job holds.
#include "driver/judges/rank_judge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "driver/record/job_config.hpp"
#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

using test::Rig;
using test::scenario_of;

constexpr std::string_view kWeight = "decoder.layers.0.mlp.linear_fc1.weight";

/// Returns all findings of the ranks as lines.
std::string said_in(const LifeRecord& life) {
  std::ostringstream text;
  for (const auto& rank : life.ranks) {
    text << rank.message;  // of a rank that failed
    for (const auto& finding : rank.findings) {
      text << name_of(finding.code) << " | " << finding << '\n';
    }
  }
  return text.str();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Value& entry_of(Value& dict, std::string_view key) {
  for (auto& [name, value] : *dict.as<Dict>()) {
    if (name == Value(std::string(key))) return value;
  }
  throw std::invalid_argument("there is no entry " + std::string(key));
}

/// Two lives, the second of which loads what the first saved, changed on its way.
std::string said_after(const Interference& interference,
                       const std::string& sharding = "fully_reshardable", int saves = 1) {
  std::vector<Action> actions;
  for (int i = 0; i < saves; ++i) {
    actions.emplace_back(TrainAction{1});
    actions.emplace_back(SaveAction{});
  }
  Rig rig(scenario_of({{"dp2", actions}, {"dp2", {}}}, "gpt-tiny", sharding));
  LifeRecord first = rig.run(0);
  EXPECT_EQ(said_in(first), "");
  rig.end(0, first);
  return said_in(rig.run(1, {}, interference));
}

std::string said_of_common(void (*change)(Value& common)) { return said_after({.common = change}); }

TEST(RankJudge, finds_a_common_state_of_a_step_that_nobody_saved__dp2) {
  const auto said = said_of_common([](Value& common) { entry_of(common, "iteration") = Value(9); });
  EXPECT_TRUE(has(said, "the job is at step 9 but no save was made there")) << said;
}

TEST(RankJudge, finds_a_changed_entry_of_the_common_state__dp2) {
  const auto said = said_of_common([](Value& common) {
    entry_of(entry_of(common, "opt_param_scheduler"), "max_lr") = Value(7.5);
  });
  EXPECT_TRUE(has(said, "LOST_OBJECT | LOST_OBJECT: it was saved as")) << said;
  EXPECT_TRUE(has(said, "common['opt_param_scheduler']['max_lr']")) << said;
}

TEST(RankJudge, finds_a_checkpoint_of_another_engine__dp2) {
  const auto said = said_of_common(
      [](Value& common) { entry_of(entry_of(common, "reprise"), "engine") = Value("another"); });
  EXPECT_TRUE(
      has(said, "the checkpoint says that it is of run 'small' from step none by 'another'"))
      << said;
}

TEST(RankJudge, finds_another_kind_of_optimizer_state_than_was_saved__dp2) {
  const auto said = said_of_common([](Value& common) {
    const Value other("fully_sharded_model_space");
    entry_of(entry_of(common, "optimizer"), "param_state_sharding_type") = other;
    entry_of(entry_of(common, "content_metadata"), "distrib_optim_sharding_type") = other;
  });
  EXPECT_TRUE(has(said,
                  "LAYOUT_MISMATCH | LAYOUT_MISMATCH: the checkpoint says that its "
                  "optimizer state is"))
      << said;
}

TEST(RankJudge, finds_a_changed_constant_object__dp2) {
  bool there = false;
  Interference other_buckets;
  other_buckets.state = [&there](GlobalRank /*rank*/, StateDict& loaded) {
    for (auto& leaf : loaded.objects) {
      if (!leaf.key.ends_with("per_bucket_numel")) continue;
      there = true;
      leaf.value = Value("none");
    }
  };
  const auto said = said_after(other_buckets, "dp_reshardable");
  EXPECT_TRUE(there);
  EXPECT_TRUE(has(said, "is loaded as 'none'")) << said;
}

/// Writes the elements that the uninterrupted job has at this step into a leaf.
void fill(const TensorLeaf& leaf, const GlobalState& from) {
  for (const auto& piece : leaf.pieces) {
    const Bytes elements = elements_of(*from.tensor(leaf.key), piece.box);
    copy_strided(
        {elements.data(), contiguous_strides(piece.box.extent)},
        {leaf.data + static_cast<std::size_t>(piece.local) * size_of(leaf.dtype), piece.strides},
        piece.box.extent, size_of(leaf.dtype));
  }
}

Interference with_tensor_of(const std::shared_ptr<const GlobalState>& state) {
  return {.state = [state](GlobalRank /*rank*/, StateDict& loaded) {
    for (const auto& leaf : loaded.tensors) {
      if (leaf.key.ends_with(kWeight)) fill(leaf, *state);
    }
  }};
}

TEST(RankJudge, finds_elements_that_a_load_left_as_they_were__dp2) {
  const Scenario scenario = scenario_of({{"dp2", {}}, {"dp2", {}}});
  ReferenceRuns references;
  const auto before = references.get(unloaded_config_of(scenario, 1))->state(Step{0});
  const auto said = said_after(with_tensor_of(before), "fully_reshardable", 2);
  EXPECT_TRUE(has(said, "BIT_MISMATCH | ")) << said;
  EXPECT_TRUE(has(said, "before the load, which left it as it was")) << said;
}

TEST(RankJudge, finds_elements_of_a_step_trained_during_the_save__dp2) {
  Scenario scenario = scenario_of(
      {{"dp2", {TrainAction{1}, SaveAction{.async = true}, TrainAction{1}}}, {"dp2", {}}});
  Rig rig(scenario);
  LifeRecord first = rig.run(0);
  for (auto& rank : first.ranks) rank.saves[0].point.beside = 1;
  rig.end(0, first);
  ReferenceRuns references;
  const auto later = references.get(config_of(scenario, 0))->state(Step{2});
  const auto said = said_in(rig.run(1, {}, with_tensor_of(later)));
  EXPECT_TRUE(has(said, "TORN_SNAPSHOT | ")) << said;
  EXPECT_TRUE(has(said, "of step 2, which was trained while it was being saved")) << said;
}

/// Hands zeros to the save in the place of the job's own elements.
StateDict with_zeros(StateDict state) {
  static Bytes zeros(std::size_t{1} << 20);
  for (auto& leaf : state.tensors) {
    if (leaf.key.ends_with(kWeight)) leaf.data = zeros.data();
  }
  return state;
}

TEST(RankJudge, finds_a_save_of_something_else_than_the_job_holds__dp2) {
  Rig rig(scenario_of({{"dp2", {TrainAction{1}, SaveAction{}}}}));
  sim::Policies policies;
  policies.job.saved = with_zeros;
  const auto said = said_in(rig.run(0, policies));
  EXPECT_TRUE(has(
      said,
      "STALE_BYTES | STALE_BYTES: what is passed to the save of step 1 is not what the job holds"))
      << said;
}

}  // namespace
}  // namespace reprise::driver
