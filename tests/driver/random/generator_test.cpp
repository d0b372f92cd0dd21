// Tests that random scenarios are valid and varied, and that the same seed gives the same
// scenarios. Independent rules confirm the outcomes that the scenarios expect.

#include "driver/random/generator.hpp"
#include "core/base/codes.hpp"
#include "driver/language/scenario_writer.hpp"

#include <gtest/gtest.h>

#include <set>

#include "driver/random/case_distribution.hpp"
#include "driver/random/outcome_rules.hpp"
#include "driver/random/random_modules.hpp"
#include "driver/runs/property.hpp"
#include "reprise/error.hpp"
#include "sim/job/model/model.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::driver {
namespace {

constexpr std::uint64_t kCases = 2000;

Scenario scenario_of(std::uint64_t number) { return random_scenario(Stream(number), {}); }

TEST(Generator, a_case_is_a_function_of_its_seed) {
  std::set<std::string> texts;
  for (std::uint64_t n = 0; n < 200; ++n) {
    EXPECT_EQ(scenario_of(n), scenario_of(n)) << n;
    texts.insert(to_yaml(scenario_of(n)));
  }
  EXPECT_GT(texts.size(), 195U) << "each has different ones";
}

TEST(Generator, every_case_is_what_a_file_could_say) {
  for (std::uint64_t n = 0; n < 500; ++n) {
    Scenario scenario = scenario_of(n);
    scenario.file = "random.yaml";
    EXPECT_TRUE(makes_sense(scenario)) << n;
    const std::string text = to_yaml(scenario);
    EXPECT_EQ(parse_scenario(text, scenario.file), scenario) << text;
  }
}

TEST(Generator, faulty_cases_can_be_written_to_a_file_and_cover_all_kinds) {
  std::set<std::string> kinds;
  std::size_t members = 0;
  for (std::uint64_t n = 0; n < 500; ++n) {
    Scenario scenario = random_faulty_scenario(Stream(n), {});
    scenario.file = "random.yaml";
    EXPECT_TRUE(makes_sense(scenario)) << n;
    const std::string text = to_yaml(scenario);
    EXPECT_EQ(parse_scenario(text, scenario.file), scenario) << text;
    for (const auto& plan : scenario.lives) {
      members += plan.ranks.empty() ? 0 : 1;  // counts the lives that list their ranks
      for (const auto& action : plan.actions) {
        if (const auto* fault = std::get_if<FaultAction>(&action))
          kinds.emplace(sim::name_of(fault->kind));
        if (std::holds_alternative<BadResultAction>(action)) kinds.insert("bad_result");
      }
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"bad_result", "crash", "no_space", "sync_error",
                                          "torn_write", "write_error"}));
  EXPECT_GT(members, 100U);
}

TEST(Generator, worlds_and_lives_stay_in_their_limits) {
  const CaseLimits limits{.world_max = 5, .lives_max = 2};
  for (std::uint64_t n = 0; n < kCases; ++n) {
    const Scenario scenario = random_scenario(Stream(n), limits);
    EXPECT_LE(scenario.lives.size(), 2U) << n;
    for (const auto& plan : scenario.lives) {
      EXPECT_LE(plan.layout.world_size(), 5) << n;
      EXPECT_TRUE(plan.modules.empty() || plan.world_size() <= 5) << n;
    }
  }
}

TEST(Generator, no_kind_of_change_and_no_value_is_rare) {
  CaseDistribution distribution;
  for (std::uint64_t n = 0; n < kCases; ++n) distribution.add(scenario_of(n));
  struct Row {
    const char* axis;
    const char* value;
    std::uint64_t percent;
  };
  const std::vector<Row> rows = {
      {"change", "EP", 25},
      {"change", "FSDP", 35},
      {"change", "TP", 25},
      {"change", "PP", 25},
      {"change", "HSDP", 15},
      {"change", "CP", 15},
      {"change", "world up", 25},
      {"change", "world down", 25},
      {"change", "order", 25},
      {"change", "sharding", 25},
      {"change", "none", 4},
      {"change", "3 or more", 40},
      {"model", "gpt-tiny", 20},
      {"model", "moe-tiny", 20},
      {"model", "moe-tiny-mtp", 20},
      {"model", "vision-tiny", 10},
      {"model", "audio-tiny", 10},
      {"model", "language-tiny", 8},
      {"model", "hybrid-tiny", 8},
      {"model", "language-moe", 1},
      {"modules", "1", 70},
      {"modules", "2", 12},
      {"modules", "3", 6},
      {"place", "disjoint", 12},
      {"place", "colocated", 10},
      {"change", "place", 4},
      {"module", "frozen", 2},
      {"module", "overflows", 8},
      {"k", "0", 25},
      {"k", "1", 25},
      {"k", "2", 25},
      {"expected", "refusal", 5},
      {"expected", "continuity", 70},
      {"world", "9-16", 25},
      {"layout", "hsdp", 15},
      {"layout", "vpp", 10},
      {"layout", "stage_layers", 10},
      {"layout", "etp", 15},
      {"steps", "load in place", 10},
      {"lives", "3", 10},
      {"dim", "1", 15},
      {"world", "1", 10},
      {"strictness", "others", 25},
      {"nodes", "some", 40},
      {"rerun", "validated", 25},
      {"format", "torch_dist", 25},
      {"format", "torch", 3},
      {"format", "torch_dcp", 3},
      {"format", "fsdp_dtensor", 3},
      {"format", "zarr", 3},
      {"iterators", "plain", 20},
      {"iterators", "wrapped", 20},
      {"template", "forced", 5},
  };
  for (const auto& row : rows) {
    EXPECT_GE(distribution.count(row.axis, row.value) * 100, row.percent * kCases)
        << row.axis << " " << row.value << "\n"
        << distribution.table();
  }
  EXPECT_LE(distribution.count("model", "language-moe") * 100, 4 * kCases)
      << "such a job takes too long";
  for (const auto sharding : sim::sharding_names()) {
    EXPECT_GE(distribution.count("sharding", std::string(sharding)) * 5, kCases) << sharding;
  }
}

TEST(Generator, every_strict_mode_is_drawn) {
  std::set<Strictness> drawn;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    drawn.insert(scenario_of(seed).checkpoint.strictness);
  }
  const auto is_mode = [](int mode) {
    try {
      return !name_of(static_cast<Strictness>(mode)).empty();
    } catch (const std::exception&) {
      return false;  // name_of() refuses numbers that are no mode
    }
  };
  EXPECT_TRUE(is_mode(0));
  for (int mode = 0; is_mode(mode); ++mode) {
    EXPECT_TRUE(drawn.contains(static_cast<Strictness>(mode))) << mode;
  }
}

LifePlan plan_of(const char* layout, std::string_view sharding, std::vector<Action> actions = {}) {
  return {.layout = sim::parse_layout(layout),
          .optimizer_sharding = sim::sharding_named(sharding),
          .actions = std::move(actions)};
}

const ExpectedRefusal kBucketsRefused{Code::kLayoutMismatch, "dp_reshardable"};

TEST(Generator, buckets_survive_a_change_of_data_parallelism_alone) {
  struct Row {
    const char* saved;
    const char* loading;
    bool refused;
  };
  const std::vector<Row> rows = {
      {"tp2 dp2", "tp2 dp3", false},
      {"tp2 dp4", "tp2 dp4 dp_replicate2", false},
      {"tp2 dp2", "tp2 dp2 order dp-tp", false},
      {"tp2 dp2", "tp2 cp2", false},
      {"ep2 dp2", "ep2 dp4", false},
      {"tp2 dp2", "tp2 dp2 etp2", false},
      {"tp2 dp2", "tp4", true},
      {"tp2 dp2", "dp2", true},
      {"dp2", "pp2 dp2", true},
      {"dp2 ep2", "dp2", true},
      {"tp2 dp2", "tp2 dp2 etp1", true},
      {"pp2", "pp2 vpp2", true},
      {"pp2", "pp2 layers 1-3", true},
  };
  for (const auto& row : rows) {
    const LifePlan loading = plan_of(row.loading, "fully_reshardable");
    for (const auto sharding : sim::sharding_names()) {
      const bool refused =
          refusal_between(plan_of(row.saved, sharding), loading) == kBucketsRefused;
      EXPECT_EQ(refused, row.refused && sharding == "dp_reshardable")
          << row.saved << " -> " << row.loading << ", " << sharding;
    }
  }
}

TEST(Generator, every_size_of_a_layout_changes_in_some_case) {
  std::set<std::string_view> changed;
  for (std::uint64_t n = 0; n < kCases; ++n) {
    const auto lives = scenario_of(n).lives;
    for (std::size_t i = 1; i < lives.size(); ++i) {
      for (const auto& field : sim::kLayoutFields) {
        const bool same = lives[i - 1].layout.*field.size == lives[i].layout.*field.size;
        if (!same) changed.insert(field.name);
      }
    }
  }
  const LifePlan saved = plan_of("dp4 pp2", "fully_reshardable");
  for (const auto& field : sim::kLayoutFields) {
    EXPECT_TRUE(changed.contains(field.name)) << field.name;
    LifePlan loading = saved;
    loading.layout.*field.size = saved.layout.*field.size > 1 ? 1 : 2;
    auto changes = changes_between(saved, loading);
    for (const auto* size : {"world up", "world down"}) std::erase(changes, size);
    EXPECT_FALSE(changes.empty()) << field.name;
  }
}

TEST(Generator, a_scenario_ends_at_the_first_load_that_must_be_refused) {
  Scenario scenario;
  scenario.model = "gpt-tiny";
  const auto life = [](const char* layout) {
    return plan_of(layout, "dp_reshardable", {SaveAction{}});
  };
  scenario.lives = {life("dp2"), life("dp3"), life("tp2"), life("tp4")};
  expect_what_must_come(scenario);
  EXPECT_EQ(scenario.lives.size(), 3U);
  EXPECT_EQ(scenario.expect.refusal, Code::kLayoutMismatch);
}

TEST(Generator, a_forced_template_needs_a_rerun_state_of_as_many_ranks) {
  LifePlan saved = plan_of("tp2 dp2", "fully_reshardable", {SaveAction{}});
  LifePlan loading = plan_of("dp4", "fully_reshardable");
  EXPECT_EQ(refusal_between(saved, loading), std::nullopt) << "as stored";
  loading.rerun_template = sim::RerunTemplate::kForced;
  const ExpectedRefusal refused{Code::kNotStored, "rerun_state_machine_state"};
  EXPECT_EQ(refusal_between(saved, loading), refused) << "it was disabled";
  saved.rerun = sim::RerunMode::kValidateResults;
  EXPECT_EQ(refusal_between(saved, loading), std::nullopt);
  saved.format = sim::CheckpointFormat::kFsdpDtensor;
  EXPECT_EQ(refusal_between(saved, loading), refused);
  saved.format = sim::CheckpointFormat::kTorchDist;
  saved.layout.dp = 3;
  EXPECT_EQ(refusal_between(saved, loading), refused);
}

TEST(Generator, a_middle_stage_without_layers_owns_nothing) {
  const auto owns = [](const char* layout, const char* model) {
    return every_rank_owns(sim::parse_layout(layout), model);
  };
  EXPECT_TRUE(owns("pp2", "gpt-tiny"));
  EXPECT_TRUE(owns("pp3", "gpt-tiny"));
  EXPECT_FALSE(owns("pp4", "gpt-tiny"));
  EXPECT_TRUE(owns("pp4", "moe-tiny"));
  EXPECT_FALSE(owns("pp3 layers 4-0-0", "moe-tiny"));
  EXPECT_TRUE(owns("pp3 layers 0-4-0", "moe-tiny"));
}

TEST(Generator, every_life_that_loads_counts_when_ranks_may_hold_nothing) {
  const auto all_own = [](std::vector<const char*> layouts) {
    Scenario scenario;
    scenario.model = "gpt-tiny";
    for (const auto* layout : layouts) {
      scenario.lives.push_back(plan_of(layout, "fully_reshardable", {SaveAction{}}));
    }
    expect_what_must_come(scenario);
    return scenario.expect.every_rank_owns;
  };
  EXPECT_FALSE(all_own({"tp2", "tp2", "pp4"}));
  EXPECT_FALSE(all_own({"tp2", "pp4", "tp2"}));
  EXPECT_TRUE(all_own({"pp4", "tp2", "tp2"})) << "the first life loads nothing";
}

// --- jobs of several modules --------------------------------------------------------------------

struct ModuleRow {
  const char* name;
  const char* layout;
  std::vector<std::int32_t> ranks = {};
  const char* sharding = "fully_reshardable";
  const char* model = "audio-tiny";
};

LifePlan plan_of(const std::vector<ModuleRow>& rows) {
  LifePlan plan;
  plan.actions = {SaveAction{}};
  for (const auto& row : rows) {
    sim::ModuleConfig module{.name = row.name, .model = row.model};
    module.layout = sim::parse_layout(row.layout);
    module.optimizer_sharding = sim::sharding_named(row.sharding);
    for (const auto rank : row.ranks) module.ranks.push_back({rank});
    plan.modules.push_back(std::move(module));
  }
  plan.modules = side_by_side(std::move(plan.modules));
  return plan;
}

/// Requires that the job passes every check that a run makes before it builds the job.
void expect_accepted(const LifePlan& plan) {
  EXPECT_NO_THROW(sim::check_modules(plan.modules, plan.world_size()))
      << sim::to_string(plan.modules);
  for (const auto& module : plan.modules) {
    EXPECT_NO_THROW({
      sim::check(module.layout);
      const sim::ModelSpec model = sim::model_named(module.model);
      sim::check_fits(model, module.layout);
      for (std::int64_t layer = 0; layer < model.layers; ++layer) {
        sim::stage_of(layer, model.layers, module.layout);
      }
      sim::dense_mesh(module.layout, module.ranks);
      sim::expert_mesh(module.layout, module.ranks);
    }) << module;
  }
}

TEST(Generator, modules_stand_as_a_job_accepts_them_in_worlds_of_any_size) {
  for (const std::int32_t world_max : {1, 2, 3, 5, 16}) {
    const CaseLimits limits{.world_max = world_max};
    for (std::uint64_t n = 0; n < 500; ++n) {
      Stream random(n);
      LifePlan plan{.modules = random_modules(random, limits)};
      for (int life = 0; life < 3; ++life) {
        ASSERT_GE(plan.modules.size(), 2U);
        ASSERT_LE(plan.modules.size(), 3U);
        EXPECT_LE(plan.world_size(), world_max);
        expect_accepted(plan);
        plan.modules = changed_modules(random, plan.modules, limits);
      }
    }
  }
}

TEST(Generator, modules_in_buckets_only_change_their_data_parallelism) {
  std::size_t buckets = 0;
  for (std::uint64_t n = 0; n < 1000; ++n) {
    Stream random(n);
    const LifePlan saved{.modules = random_modules(random, {})};
    const LifePlan loading{.modules = changed_modules(random, saved.modules, {})};
    EXPECT_EQ(refusal_between(saved, loading), std::nullopt)
        << sim::to_string(saved.modules) << "\n"
        << sim::to_string(loading.modules);
    for (const auto& module : saved.modules) {
      const auto* other = sim::module_named(loading.modules, module.name);
      ASSERT_NE(other, nullptr);
      EXPECT_EQ(module.model, other->model);
      EXPECT_EQ(module.frozen, other->frozen);
      const bool moved = !(module.layout == other->layout);
      buckets += moved && module.optimizer_sharding == sim::Sharding::kDpReshardable ? 1 : 0;
    }
  }
  EXPECT_GT(buckets, 50U);
}

TEST(Generator, modules_that_one_side_lacks_are_refused_unless_named) {
  const auto two = plan_of({{"a", "tp2"}, {"b", "dp2"}});
  const auto three = plan_of({{"a", "tp2"}, {"c", "dp2"}, {"b", "dp2"}});
  EXPECT_EQ(refusal_between(two, two), std::nullopt);
  EXPECT_EQ(refusal_between(two, three), (ExpectedRefusal{Code::kNotStored, "c"}));
  EXPECT_EQ(refusal_between(three, two), (ExpectedRefusal{Code::kNotRequested, "c"}));
  auto named = three;
  named.load.adds = {"c"};
  EXPECT_EQ(refusal_between(two, named), std::nullopt);
  named = two;
  named.load.drops = {"c"};
  EXPECT_EQ(refusal_between(three, named), std::nullopt);
  const auto model = plan_of("tp2", "fully_reshardable", {SaveAction{}});
  EXPECT_EQ(refusal_between(model, two)->code, passed_on::kForeignCheckpoint);
  EXPECT_EQ(refusal_between(two, model)->code, passed_on::kForeignCheckpoint);
  const auto other = plan_of({{"a", "tp2", {}, "fully_reshardable", "vision-tiny"}, {"b", "dp2"}});
  EXPECT_EQ(refusal_between(two, other)->code, passed_on::kForeignCheckpoint);
}

TEST(Generator, module_buckets_survive_a_new_place_but_not_a_new_dp) {
  const auto saved = plan_of({{"a", "tp2", {}, "dp_reshardable"}, {"b", "dp2"}});
  EXPECT_EQ(refusal_between(saved, plan_of({{"b", "tp3"}, {"a", "tp2 dp2"}})), std::nullopt);
  EXPECT_EQ(refusal_between(saved, plan_of({{"a", "dp2"}, {"b", "dp2"}})), kBucketsRefused);
  auto loading = plan_of({{"a", "dp2"}, {"b", "dp2"}});
  loading.modules[0].frozen = true;
  EXPECT_EQ(refusal_between(saved, loading), std::nullopt) << "it has no optimizer";
  loading.modules[0].frozen = false;
  loading.load.finetune = true;
  EXPECT_EQ(refusal_between(saved, loading), std::nullopt) << "it loads only weights";
  loading.load = {.optimizer = false};
  EXPECT_EQ(refusal_between(saved, loading), std::nullopt);
  loading.load = {};
  auto without = saved;
  without.actions = {SaveAction{.optimizer = false}};
  EXPECT_EQ(refusal_between(without, loading), std::nullopt)
      << "nothing that could be refused was saved";
  without.actions = {SaveAction{}, ReleaseAction{}};
  EXPECT_EQ(refusal_between(without, loading), std::nullopt) << "a release has only weights";
}

TEST(Generator, a_rank_owns_if_it_has_a_part_of_one_module) {
  const auto owns = [](const std::vector<ModuleRow>& rows) {
    return every_rank_owns(plan_of(rows), "");
  };
  EXPECT_TRUE(owns({{"a", "pp2"}, {"b", "dp2"}}));
  EXPECT_FALSE(owns({{"a", "pp4 layers 0-2-0-0"}, {"b", "dp2"}})) << "rank 2";
  EXPECT_TRUE(owns({{"a", "pp4 layers 0-2-0-0", {0, 1, 2, 3}}, {"b", "dp4", {0, 1, 2, 3}}}));
  EXPECT_FALSE(
      owns({{"a", "pp4 layers 0-2-0-0", {0, 1, 2, 3}}, {"b", "pp4 layers 0-2-0-0", {0, 1, 2, 3}}}));
  EXPECT_TRUE(
      owns({{"a", "pp4 layers 0-2-0-0", {0, 1, 2, 3}}, {"b", "pp4 layers 0-2-0-0", {2, 0, 1, 3}}}))
      << "in b rank 2 is first";
}

TEST(Generator, a_commit_is_a_seed) {
  EXPECT_EQ(seed_of_commit("00000000000001f"), 31U);
  EXPECT_EQ(seed_of_commit("00000000000001f7654321"), 31U) << "the first 15 digits";
  EXPECT_EQ(seed_of_commit("unknown"), 1U);
  EXPECT_EQ(seed_of_commit(""), 1U);
}

}  // namespace
}  // namespace reprise::driver
