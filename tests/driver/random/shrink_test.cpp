// Tests that shrinking a failing scenario preserves its kind of failure.

#include "driver/random/shrink.hpp"
#include "driver/language/scenario_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "driver/random/outcome_rules.hpp"
#include "driver/runs/property.hpp"
#include "driver/runs/run.hpp"
#include "sim/mutants/mutants.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;

TEST(Shrink, simpler_variants_are_lighter_and_could_be_written_in_a_file) {
  for (std::uint64_t n = 0; n < 50; ++n) {
    const Scenario scenario =
        n % 2 == 0 ? random_scenario(Stream(n), {}) : random_faulty_scenario(Stream(n), {});
    for (auto& variant : simpler(scenario)) {
      EXPECT_LT(weight_of(variant), weight_of(scenario));
      EXPECT_TRUE(makes_sense(variant));
      variant.file = "variant.yaml";
      EXPECT_EQ(parse_scenario(to_yaml(variant), variant.file), variant) << to_yaml(variant);
    }
  }
}

bool tensor_parallelism_appears(const Scenario& scenario) {
  for (std::size_t i = 1; i < scenario.lives.size(); ++i) {
    if (scenario.lives[i - 1].layout.tp == 1 && scenario.lives[i].layout.tp > 1) {
      return true;
    }
  }
  return false;
}

TEST(Shrink, to_the_smallest_scenario_of_a_kind_from_wherever_it_begins) {
  std::size_t shrunk = 0;
  for (std::uint64_t n = 0; n < 120; ++n) {
    const Scenario from = random_scenario(Stream(n), {});
    if (!tensor_parallelism_appears(from)) continue;
    ++shrunk;
    const Scenario small = shrink(from, tensor_parallelism_appears).scenario;
    ASSERT_EQ(small.lives.size(), 2U) << to_yaml(small);
    EXPECT_EQ(small.lives[0].layout, sim::Layout{}) << to_yaml(small);
    EXPECT_EQ(small.lives[1].layout, sim::parse_layout("tp2")) << to_yaml(small);
    EXPECT_EQ(small.model, "gpt-tiny");
    EXPECT_EQ(small.ranks_per_node, 0);
    EXPECT_EQ(small.lives[0].actions.size(), 1U);
    EXPECT_TRUE(small.lives[1].actions.empty());
    EXPECT_EQ(small, shrink(from, tensor_parallelism_appears).scenario)
        << "must be the same every time";
  }
  EXPECT_GT(shrunk, 15U);
}

const std::string kModules = R"(proves: something
job:
  modules:
    vision: {model: vision-tiny, layout: tp2, loss_scale: 65536}
    audio: {model: audio-tiny, layout: dp2, frozen: true}
    language: {model: language-tiny, layout: tp2 pp2, sharding: dp_reshardable}
  optimizer: {kind: adam, sharding: fsdp_dtensor}
  extra_tensor: true
  random_by_dp: true
  group_order: plain_first
  keys: bare
steps:
  - train: {steps: 6, save_interval: 2}
  - restart:
      modules:
        language: {layout: tp2 pp2 dp2, ranks: [0, 1, 2, 3, 4, 5, 6, 7]}
        vision: {layout: dp8, ranks: [7, 6, 5, 4, 3, 2, 1, 0]}
      no_load_scheduler: true
      drops: [audio]
  - train: 1
expect: {max_delta: 0}
)";

Scenario of_modules() {
  Scenario scenario = parse_scenario(kModules, "variant.yaml");
  expect_what_must_come(scenario);
  return scenario;
}

TEST(Shrink, modules_have_simpler_variants_that_a_file_can_have) {
  const Scenario scenario = of_modules();
  EXPECT_FALSE(scenario.expect.refusal);
  bool fewer = false;
  bool one_model = false;
  for (const auto& variant : simpler(scenario)) {
    EXPECT_LT(weight_of(variant), weight_of(scenario));
    EXPECT_EQ(parse_scenario(to_yaml(variant), variant.file), variant) << to_yaml(variant);
    const std::size_t modules = variant.lives.front().modules.size();
    fewer = fewer || modules == 2;
    one_model = one_model || (modules == 0 && variant.model == "vision-tiny");
    for (const auto& plan : variant.lives) {
      if (plan.modules.empty()) continue;
      EXPECT_NO_THROW(sim::check_modules(plan.modules, plan.world_size())) << to_yaml(variant);
    }
  }
  EXPECT_TRUE(fewer);
  EXPECT_TRUE(one_model);
}

bool a_module_moves(const Scenario& scenario) {
  const auto& lives = scenario.lives;
  for (std::size_t i = 1; i < lives.size(); ++i) {
    for (const auto& module : lives[i].modules) {
      const auto* before = sim::module_named(lives[i - 1].modules, module.name);
      if (before != nullptr && before->layout.dp < module.layout.dp) return true;
    }
  }
  return false;
}

TEST(Shrink, modules_become_one_in_its_plainest_form) {
  const auto expect_plain = [](const Scenario& from) {
    const Scenario small = shrink(from, a_module_moves).scenario;
    ASSERT_EQ(small.lives.size(), 2U) << to_yaml(small);
    EXPECT_EQ(to_string(small.lives[1].modules[0].layout), "dp2") << to_yaml(small);
    for (const auto& plan : small.lives) {
      ASSERT_EQ(plan.modules.size(), 1U) << to_yaml(small);
      sim::ModuleConfig plain{.name = plan.modules[0].name, .model = "audio-tiny"};
      plain.layout = plan.modules[0].layout;
      EXPECT_EQ(plan.modules, sim::side_by_side({plain})) << to_yaml(small);
      EXPECT_EQ(plan.load, sim::LoadChoice{}) << to_yaml(small);
      EXPECT_FALSE(plan.plain_first || plan.keys != sim::KeyForm::kPrefixed) << to_yaml(small);
    }
    EXPECT_FALSE(small.extra_tensor || small.random_by_dp) << to_yaml(small);
    EXPECT_EQ(small.lives[0].actions, std::vector<Action>{SaveAction{}}) << to_yaml(small);
  };
  std::size_t shrunk = 0;
  for (std::uint64_t n = 0; n < 100; ++n) {
    const Scenario from = random_scenario(Stream(n), {});
    if (!a_module_moves(from)) continue;
    ++shrunk;
    expect_plain(from);
  }
  EXPECT_GT(shrunk, 3U);
}

TEST(Shrink, a_module_that_has_to_stay_stays_with_what_matters_of_it) {
  const auto frozen_colocated = [](const Scenario& scenario) {
    const auto& modules = scenario.lives.front().modules;
    return modules.size() > 1 && modules[0].loss_scale.overflows() && modules[1].frozen;
  };
  const Scenario small = shrink(of_modules(), frozen_colocated).scenario;
  EXPECT_EQ(sim::to_string(small.lives.front().modules), "vision: tp1 on 0, audio: tp1 on 1")
      << to_yaml(small);
}

TEST(Shrink, modules_that_share_their_ranks_share_fewer_in_order) {
  const auto shared = [](const Scenario& scenario) {
    const auto& modules = scenario.lives.back().modules;
    return modules.size() > 1 && modules[0].layout.world_size() > 1 &&
           std::is_permutation(modules[0].ranks.begin(), modules[0].ranks.end(),
                               modules[1].ranks.begin(), modules[1].ranks.end());
  };
  const Scenario small = shrink(of_modules(), shared).scenario;
  for (const auto& module : small.lives.back().modules) {
    EXPECT_EQ(module.layout.world_size(), 2) << to_yaml(small);
    EXPECT_EQ(module.ranks, sim::members_of(module.layout).members()) << to_yaml(small);
  }
}

bool a_rank_dies_in_commit(const Scenario& scenario) {
  for (const auto& plan : scenario.lives) {
    for (const auto& action : plan.actions) {
      const auto* fault = std::get_if<FaultAction>(&action);
      if (fault != nullptr && fault->kind == sim::FaultKind::kCrash && fault->phase == "commit")
        return true;
    }
  }
  return false;
}

TEST(Shrink, a_fault_stays_and_all_else_goes) {
  std::size_t shrunk = 0;
  for (std::uint64_t n = 0; n < 100; ++n) {
    const Scenario from = random_faulty_scenario(Stream(n), {});
    if (!a_rank_dies_in_commit(from)) continue;
    ++shrunk;
    const Scenario small = shrink(from, a_rank_dies_in_commit).scenario;
    EXPECT_TRUE(a_rank_dies_in_commit(small));
    EXPECT_LE(small.lives.size(), 2U) << to_yaml(small);
    EXPECT_EQ(small.lives[0].layout, sim::Layout{}) << to_yaml(small);
    EXPECT_TRUE(small.lives[0].ranks.empty()) << to_yaml(small);
  }
  EXPECT_GT(shrunk, 1U);
}

TEST(Shrink, rerun_keys_are_dropped_unless_they_matter) {
  const auto has_plain_iterators = [](const Scenario& scenario) {
    return std::any_of(scenario.lives.begin(), scenario.lives.end(),
                       [](const auto& plan) { return plan.iterators == sim::Wrapping::kPlain; });
  };
  std::size_t shrunk = 0;
  for (std::uint64_t n = 0; n < 40; ++n) {
    const Scenario from = random_scenario(Stream(n), {});
    if (!has_plain_iterators(from)) continue;
    ++shrunk;
    const Scenario small = shrink(from, has_plain_iterators).scenario;
    EXPECT_TRUE(has_plain_iterators(small));
    for (const auto& plan : small.lives) {
      EXPECT_EQ(plan.rerun, sim::RerunMode::kDisabled) << to_yaml(small);
      EXPECT_EQ(plan.format, sim::CheckpointFormat::kTorchDist) << to_yaml(small);
      EXPECT_EQ(plan.rerun_template, sim::RerunTemplate::kAsStored) << to_yaml(small);
    }
    const Scenario least = shrink(from, [](const Scenario&) { return true; }).scenario;
    EXPECT_FALSE(has_plain_iterators(least)) << to_yaml(least);
  }
  EXPECT_GT(shrunk, 3U);
}

TEST(Shrink, each_key_gets_its_default_unless_it_matters) {
  const Scenario from = parse_scenario(R"(proves: something
job:
  model: gpt-tiny
  layout: dp2
  optimizer: {kind: adam, dim: 1}
  rerun_samples: 3
  fallback: allowed
checkpoint: {keep: 2, fall_back: newest_whole, checksums: verified, assume_constant_structure: true}
steps:
  - train: 2
  - save
  - restart: {layout: dp2, no_load_rng: true, finetune: true}
expect: {max_delta: 0}
)",
                                       "variant.yaml");
  const auto keeps_two = [](const Scenario& scenario) { return scenario.checkpoint.keep == 2; };
  const Scenario small = shrink(from, keeps_two).scenario;
  EXPECT_EQ(small.checkpoint, CheckpointPlan{.keep = 2}) << to_yaml(small);
  EXPECT_EQ(small.rerun_samples, 0) << to_yaml(small);
  for (const auto& plan : small.lives) {
    EXPECT_EQ(plan.fallback, sim::RegistryUse::kForbidden) << to_yaml(small);
    EXPECT_EQ(plan.load, sim::LoadChoice{}) << to_yaml(small);
  }
  const auto variants = simpler(from);
  for (auto variant = variants.begin(); variant != variants.end(); ++variant) {
    EXPECT_EQ(std::count(variant, variants.end(), *variant), 1) << to_yaml(*variant);
  }
}

TEST(Shrink, a_scenario_that_fails_alone_stays_as_it_is) {
  const Scenario from = random_scenario(Stream(1), {});
  const Shrunk shrunk = shrink(from, [](const Scenario&) { return false; });
  EXPECT_EQ(shrunk.scenario, from);
  EXPECT_EQ(shrunk.tries, simpler(from).size());
  EXPECT_EQ(shrink(
                from, [](const Scenario&) { return true; }, 3)
                .tries,
            3U);
}

// --- scenarios that fail because of a mutant ----------------------------------------------------

struct MutantRow {
  std::string mutant;
  std::string property;
  std::int32_t world_max;  ///< upper limit for the world size of the shrunk scenario
  std::size_t actions_max;
};

std::size_t actions_of(const Scenario& scenario) {
  std::size_t actions = 0;
  for (const auto& plan : scenario.lives) actions += plan.actions.size();
  return actions;
}

reports::ScenarioResult replayed(const std::string& file, const std::string& mutant) {
  return run_scenario(read_scenario(file), LaneKind::kSim, {.mutant = mutant});
}

TEST(Shrink, a_mutant_found_by_random_cases_shrinks_to_a_small_file) {
  const std::vector<MutantRow> rows = {
      {"floor-vs-ceil-chunk", "continuity", 3, 2},
      {"replica-zero-axis/tp", "continuity", 2, 2},
      {"replica-zero-axis/dp", "continuity", 2, 2},
      {"post-load-gather-noop", "continuity", 2, 3},
      {"lazy-state-template", "continuity", 1, 2},
      {"no-optimizer-in-dcp/master", "layout-free", 1, 2},
  };
  const contracts::TemporaryDirectory directory;
  for (const auto& row : rows) {
    PropertyRequest request{.seed = 1, .cases = 60, .limits = {}, .lane = {}};
    request.lane.mutant = row.mutant;
    request.out = directory.path();
    const PropertyRun run = run_property(property_named(row.property), request);
    ASSERT_TRUE(run.counterexample) << row.mutant;
    EXPECT_EQ(run.result.verdict, Verdict::kFail);
    const Counterexample& found = *run.counterexample;
    EXPECT_EQ(run.result.code, found.failure.code);
    EXPECT_FALSE(run.result.code.empty());
    EXPECT_LE(found.scenario.lives.size(), 2U) << to_yaml(found.scenario);
    EXPECT_LE(actions_of(found.scenario), row.actions_max) << to_yaml(found.scenario);
    for (const auto& plan : found.scenario.lives) {
      EXPECT_LE(plan.layout.world_size(), row.world_max) << to_yaml(found.scenario);
    }
    const auto with = replayed(found.file, row.mutant);
    EXPECT_EQ(with.verdict, Verdict::kFail) << row.mutant;
    EXPECT_EQ(with.code, found.failure.code) << row.mutant;
    EXPECT_EQ(read_scenario(found.file).recorded->mutant, row.mutant);
    const auto without = replayed(found.file, "");
    EXPECT_EQ(without.verdict, Verdict::kPass) << row.mutant << ": " << without.reason;
  }
}

TEST(Property, a_run_says_what_it_tried) {
  const PropertyRun run =
      run_property(property_named("continuity"),
                   {.seed = 5, .cases = 3, .limits = {.world_max = 2, .lives_max = 2}, .lane = {}});
  EXPECT_EQ(run.result.name, "continuity");
  EXPECT_EQ(run.result.cases, 3U);
  EXPECT_EQ(run.result.seed, 5U);
  EXPECT_EQ(run.result.verdict, Verdict::kPass);
  EXPECT_FALSE(run.result.counterexample);
  EXPECT_EQ(run.result.code, "");
  EXPECT_EQ(run.distribution.cases(), 3U);
}

TEST(Property, a_vocabulary_that_is_padded_for_another_tp_is_stored_alike) {
  for (const bool modules : {false, true}) {
    Scenario scenario = of_modules();
    scenario.lives.resize(1);
    LifePlan& plan = scenario.lives.front();
    plan.actions = {SaveAction{}, LoadAction{}};
    plan.plain_first = scenario.random_by_dp = false;
    plan.keys = sim::KeyForm::kPrefixed;
    std::erase_if(plan.modules, [](const auto& module) { return module.name != "language"; });
    plan.modules.front().layout = sim::parse_layout("tp3");
    plan.modules.front().ranks = {{0}, {1}, {2}};
    if (!modules) {
      plan.modules.clear();
      plan.layout = sim::parse_layout("tp3");
      scenario.model = "language-tiny";
    }
    const auto failure = failure_of(property_named("stored-alike"), scenario, {});
    EXPECT_FALSE(failure) << failure->code << ": " << failure->reason;
  }
}

TEST(Property, without_cases_nothing_was_shown) {
  EXPECT_EQ(run_property(property_named("continuity"), {.cases = 0}).result.verdict,
            Verdict::kInconclusive);
}

TEST(Property, an_interruption_leaves_cases_untried_and_no_verdict) {
  PropertyRequest request{.cases = 5};
  std::size_t asked = 0;
  request.interrupted = [&asked] { return ++asked > 2; };
  const PropertyRun run = run_property(property_named("continuity"), request);
  EXPECT_EQ(run.result.cases, 2U);
  EXPECT_EQ(run.untried, 3U);
  EXPECT_EQ(run.result.verdict, Verdict::kInconclusive);
}

}  // namespace
}  // namespace reprise::driver
