// Random scenarios are valid, varied and functions of their seed; what must come of them is told by
// rules of their own.

#include "scenarios/driver/generator.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/base/error.hpp"
#include "scenarios/driver/distribution.hpp"
#include "scenarios/driver/property.hpp"
#include "sim/job/sharding.hpp"

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
  EXPECT_GT(texts.size(), 195U) << "and different for each";
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

TEST(Generator, every_faulty_case_is_what_a_file_could_say_and_all_kinds_come) {
  std::set<std::string> kinds;
  std::size_t members = 0;
  for (std::uint64_t n = 0; n < 500; ++n) {
    Scenario scenario = random_faulty_scenario(Stream(n), {});
    scenario.file = "random.yaml";
    EXPECT_TRUE(makes_sense(scenario)) << n;
    const std::string text = to_yaml(scenario);
    EXPECT_EQ(parse_scenario(text, scenario.file), scenario) << text;
    for (const auto& plan : scenario.incarnations) {
      members += plan.ranks.empty() ? 0 : 1;
      for (const auto& action : plan.actions) {
        if (const auto* fault = std::get_if<FaultAction>(&action)) kinds.insert(fault->kind);
        if (std::holds_alternative<BadResultAction>(action)) kinds.insert("bad_result");
      }
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"bad_result", "crash", "no_space", "sync_error",
                                          "torn_write", "write_error"}));
  EXPECT_GT(members, 100U);
}

TEST(Generator, worlds_and_incarnations_stay_in_their_limits) {
  const CaseLimits limits{.world_max = 5, .incarnations_max = 2};
  for (std::uint64_t n = 0; n < kCases; ++n) {
    const Scenario scenario = random_scenario(Stream(n), limits);
    EXPECT_LE(scenario.incarnations.size(), 2U) << n;
    for (const auto& plan : scenario.incarnations) EXPECT_LE(plan.layout.world_size(), 5) << n;
  }
}

TEST(Generator, no_kind_of_change_and_no_value_is_rare) {
  Distribution distribution;
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
      {"model", "gpt-tiny", 25},
      {"model", "moe-tiny", 25},
      {"model", "moe-tiny-mtp", 25},
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
  };
  for (const auto& row : rows) {
    EXPECT_GE(distribution.count(row.axis, row.value) * 100, row.percent * kCases)
        << row.axis << " " << row.value << "\n"
        << distribution.table();
  }
  for (const auto sharding : sim::sharding_names()) {
    EXPECT_GE(distribution.count("sharding", std::string(sharding)) * 5, kCases) << sharding;
  }
}

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
    const IncarnationPlan loading{sim::parse_layout(row.loading), "fully_reshardable", {}};
    for (const auto sharding : sim::sharding_names()) {
      const IncarnationPlan saved{sim::parse_layout(row.saved), std::string(sharding), {}};
      const bool refused = refusal_between(saved, loading) == "LAYOUT_MISMATCH";
      EXPECT_EQ(refused, row.refused && sharding == "dp_reshardable")
          << row.saved << " -> " << row.loading << ", " << sharding;
    }
  }
}

TEST(Generator, a_scenario_ends_at_the_first_load_that_must_be_refused) {
  Scenario scenario;
  scenario.model = "gpt-tiny";
  const auto life = [](const char* layout) {
    return IncarnationPlan{sim::parse_layout(layout), "dp_reshardable", {SaveAction{}}};
  };
  scenario.incarnations = {life("dp2"), life("dp3"), life("tp2"), life("tp4")};
  expect_what_must_come(scenario);
  EXPECT_EQ(scenario.incarnations.size(), 3U);
  EXPECT_EQ(scenario.expect.refusal, "LAYOUT_MISMATCH");
}

TEST(Generator, a_stage_without_layers_owns_nothing_unless_it_is_first_or_last) {
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
      scenario.incarnations.push_back(
          {sim::parse_layout(layout), "fully_reshardable", {SaveAction{}}});
    }
    expect_what_must_come(scenario);
    return scenario.expect.every_rank_owns;
  };
  EXPECT_FALSE(all_own({"tp2", "tp2", "pp4"}));
  EXPECT_FALSE(all_own({"tp2", "pp4", "tp2"}));
  EXPECT_TRUE(all_own({"pp4", "tp2", "tp2"})) << "the first life loads nothing";
}

TEST(Generator, a_commit_is_a_seed) {
  EXPECT_EQ(seed_of_commit("00000000000001f"), 31U);
  EXPECT_EQ(seed_of_commit("00000000000001f7654321"), 31U) << "the first 15 digits";
  EXPECT_EQ(seed_of_commit("unknown"), 1U);
  EXPECT_EQ(seed_of_commit(""), 1U);
}

}  // namespace
}  // namespace reprise::driver
