#include "scenarios/driver/scenario_job.hpp"

#include <array>

#include "scenarios/driver/scenario_layout.hpp"
#include "scenarios/driver/scenario_modules.hpp"

namespace reprise::driver {
namespace {

constexpr std::int64_t kDimMax = 15;
constexpr std::array<std::string_view, 4> kRerunModes = {"disabled", "validate_results",
                                                         "report_determinism_stats", "unknown"};
constexpr std::array<std::string_view, 3> kGroupSources = {"explicit", "fallback", "half"};
constexpr std::array<std::string_view, 2> kFallbacks = {"allowed", "forbidden"};
constexpr std::array<std::string_view, 2> kDevices = {"same_device", "other_device"};

void read_optimizer(YamlMap optimizer, Scenario& scenario) {
  if (const std::string kind = optimizer.required("kind"); kind != "adam") {
    optimizer.fail(optimizer.node("kind"), "knows no optimizer '" + kind + "'; there is: adam");
  }
  scenario.optimizer_sharding = read_sharding(optimizer);
  scenario.shard_dim = optimizer.integer_in("dim", 0, kDimMax).value_or(0);
  optimizer.refuse_unknown();
}

void read_nodes(YamlMap& job, Scenario& scenario) {
  const std::int32_t world = scenario.incarnations.front().world_size();
  const auto per_node = job.integer_in("ranks_per_node", 1, kWorldMax);
  const auto nodes = job.integer_in("nodes", 1, kWorldMax);
  if (per_node && nodes) job.fail(job.node("nodes"), "says both nodes and ranks_per_node");
  if (nodes && world % *nodes != 0) {
    job.fail(job.node("nodes"), "can't put " + std::to_string(world) + " ranks evenly on " +
                                    std::to_string(*nodes) + " nodes; say ranks_per_node");
  }
  if (nodes) scenario.ranks_per_node = world / static_cast<std::int32_t>(*nodes);
  if (per_node) scenario.ranks_per_node = static_cast<std::int32_t>(*per_node);
}

void read_members(YamlMap& map, IncarnationPlan& plan) {
  if (map.has("ranks") && !plan.modules.empty()) {
    map.fail(map.node("ranks"), "names ranks, and the job has modules; each has its own ranks");
  }
  if (map.has("ranks")) plan.ranks.clear();
  for (const auto rank : read_ranks(map)) plan.ranks.push_back(rank);
  require_place_for_each(plan.ranks.size(), plan.layout, map);
}

void read_life(YamlMap& map, IncarnationPlan& plan) {
  read_members(map, plan);
  read_forms(map, plan);
  if (const auto mode = map.word("rerun", kRerunModes)) plan.rerun = *mode;
  if (const auto groups = map.word("groups", kGroupSources)) plan.groups = *groups;
  if (const auto fallback = map.word("fallback", kFallbacks)) plan.fallback = *fallback;
  if (const auto run = map.text("run")) plan.run = *run;
  if (const auto skips = map.flag("skips")) plan.skips = *skips;
}

/// A restart's layout: the job is one model from there on, if it was not before.
void read_one_model(YamlMap& restart, const Scenario& scenario, IncarnationPlan& plan) {
  if (scenario.model.empty()) {
    restart.fail(restart.node("layout"),
                 "has a layout, and the job has modules; give each its own under 'modules'");
  }
  plan.modules.clear();
  plan.layout = read_layout(restart, plan.layout.order, scenario.model);
}

/// A module keeps the sharding that it had, whether it named it or not.
void require_meaning(YamlMap& restart, const IncarnationPlan& plan) {
  if (plan.modules.empty() || !restart.has("sharding") || restart.has("modules")) return;
  restart.fail(restart.node("sharding"),
               "has a sharding for modules that name none; give the modules beside it");
}

}  // namespace

void read_job(YamlMap job, Scenario& scenario) {
  read_optimizer(job.map("optimizer"), scenario);
  IncarnationPlan first;
  first.optimizer_sharding = scenario.optimizer_sharding;
  read_modules(job, first);
  if (first.modules.empty()) {
    scenario.model = read_model(job);
    first.layout = read_layout(job, first.layout.order, scenario.model);
  }
  for (const char* known : {"model", "layout"}) static_cast<void>(job.node(known));
  read_life(job, first);
  scenario.incarnations.push_back(std::move(first));
  if (const auto seed = job.integer("seed")) scenario.seed = static_cast<std::uint64_t>(*seed);
  scenario.random_by_dp = job.flag("random_by_dp").value_or(false);
  scenario.rerun_samples = job.integer_in("rerun_samples", 1, kWorldMax).value_or(0);
  read_nodes(job, scenario);
  job.refuse_unknown();
}

IncarnationPlan read_restart(YamlMap restart, const Scenario& scenario) {
  IncarnationPlan plan = like_the_last(scenario);
  if (restart.has("sharding")) plan.optimizer_sharding = read_sharding(restart);
  read_modules(restart, plan);
  if (restart.has("layout")) read_one_model(restart, scenario, plan);
  require_meaning(restart, plan);
  for (const char* known : {"layout", "sharding"}) static_cast<void>(restart.node(known));
  read_life(restart, plan);
  plan.load = read_load_choice(restart, plan);
  plan.other_device = restart.word("on", kDevices) == "other_device";
  plan.adopts = restart.texts("adopts");
  plan.fails = restart.text("fails").value_or("");
  if (!plan.fails.empty() && !code_named(plan.fails)) {
    restart.fail(restart.node("fails"), "knows no code " + plan.fails);
  }
  restart.refuse_unknown();
  return plan;
}

ForeignProgram read_foreign(YamlMap map) {
  ForeignProgram foreign;
  foreign.command = map.texts("command");
  if (foreign.command.empty()) map.fail(map.node("command"), "wants the words of a 'command'");
  foreign.exits = static_cast<int>(map.integer_in("exits", 0, UINT8_MAX).value_or(0));
  foreign.leaves = map.integer_in("leaves", 0, INT64_MAX);
  foreign.seconds = map.integer_in("seconds", 1, INT32_MAX).value_or(foreign.seconds);
  map.refuse_unknown();
  return foreign;
}

IncarnationPlan like_the_last(const Scenario& scenario) {
  IncarnationPlan plan = scenario.incarnations.back();
  plan.actions.clear();
  plan.other_device = false;
  plan.adopts.clear();
  plan.fails.clear();
  plan.load = {};
  plan.foreign.reset();
  return plan;
}

}  // namespace reprise::driver
