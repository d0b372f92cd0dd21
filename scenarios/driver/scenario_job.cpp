#include "scenarios/driver/scenario_job.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/error.hpp"
#include "core/base/print.hpp"
#include "sim/job/model.hpp"
#include "sim/job/sharding.hpp"

namespace reprise::driver {
namespace {

constexpr std::int32_t kWorldMax = 1024;
constexpr std::int64_t kDimMax = 15;
constexpr std::array<std::string_view, 4> kRerunModes = {"disabled", "validate_results",
                                                         "report_determinism_stats", "unknown"};
constexpr std::array<std::string_view, 3> kGroupSources = {"explicit", "fallback", "half"};
constexpr std::array<std::string_view, 2> kFallbacks = {"allowed", "forbidden"};
constexpr std::array<std::string_view, 2> kDevices = {"same_device", "other_device"};

void read_stages(YamlMap& map, sim::Layout& layout) {
  if (!map.has("stage_layers")) {
    static_cast<void>(map.node("stage_layers"));  // known for suggestions
    return;
  }
  for (const auto& item : map.items("stage_layers")) {
    std::int64_t layers = 0;
    if (!item.IsScalar() || !YAML::convert<std::int64_t>::decode(item, layers)) {
      map.fail(item, "wants whole numbers under 'stage_layers'");
    }
    layout.stage_layers.push_back(layers);
  }
}

sim::Layout layout_of_map(YamlMap map, const std::string& order) {
  sim::Layout layout;
  layout.order = map.text("order").value_or(order);
  const auto read_size = [&](std::string_view name) {
    if (const auto size = map.integer_in(name, 1, kWorldMax)) {
      layout.set_size(name, static_cast<std::int32_t>(*size));
    }
  };
  for (const auto name : sim::kAxisNames) read_size(name);
  for (const auto name : sim::kFurtherSizes) read_size(name);
  read_stages(map, layout);
  map.refuse_unknown();
  return layout;
}

/// "tp2 dp2", or {tp: 2, dp: 2}: what is not named is 1, and the order stays.
sim::Layout read_layout(YamlMap& map, const std::string& order, const std::string& model) {
  const YAML::Node node = map.required_node("layout");
  try {
    sim::Layout layout;
    if (node.IsScalar()) {
      layout = sim::parse_layout(node.Scalar());
      if (node.Scalar().find("order") == std::string::npos) layout.order = order;
    } else {
      layout = layout_of_map(map.map("layout"), order);
    }
    sim::check(layout);
    sim::check_fits(sim::model_named(model), layout);
    if (layout.world_size() > kWorldMax) map.fail(node, "has a layout of too large a world");
    return layout;
  } catch (const Error& error) {
    if (!error.place().file.empty()) throw;  // a key's own error, which knows its line
    map.fail(node, "has a layout that can't be: " + error.message());
  }
}

std::string read_sharding(YamlMap& map) {
  std::string name = map.required("sharding");
  const auto names = sim::sharding_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    map.fail(map.node("sharding"),
             "knows no sharding '" + name + "'; there are: " + join(names, ", "));
  }
  return name;
}

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
  if (map.has("ranks")) plan.ranks.clear();
  std::set<std::int64_t> seen;
  for (const auto rank : map.integers("ranks")) {
    if (rank < 0 || rank >= kWorldMax || !seen.insert(rank).second) {
      map.fail(map.node("ranks"), "wants different ranks from 0 to " +
                                      std::to_string(kWorldMax - 1) + " under 'ranks'");
    }
    plan.ranks.push_back(static_cast<std::int32_t>(rank));
  }
  const auto members = static_cast<std::size_t>(plan.layout.world_size());
  if (plan.ranks.empty() || plan.ranks.size() == members) return;
  map.fail(map.node(map.has("ranks") ? "ranks" : "layout"),
           "has " + std::to_string(plan.ranks.size()) + " ranks for a layout of " +
               std::to_string(members) + "; name one for each under 'ranks'");
}

void read_life(YamlMap& map, IncarnationPlan& plan) {
  read_members(map, plan);
  if (const auto mode = map.word("rerun", kRerunModes)) plan.rerun = *mode;
  if (const auto groups = map.word("groups", kGroupSources)) plan.groups = *groups;
  if (const auto fallback = map.word("fallback", kFallbacks)) plan.fallback = *fallback;
  if (const auto run = map.text("run")) plan.run = *run;
  if (const auto skips = map.flag("skips")) plan.skips = *skips;
}

}  // namespace

void read_job(YamlMap job, Scenario& scenario) {
  scenario.model = job.required("model");
  try {
    sim::model_named(scenario.model);
  } catch (const Error& error) {
    job.fail(job.node("model"), "has no such model: " + error.message());
  }
  read_optimizer(job.map("optimizer"), scenario);
  IncarnationPlan first;
  first.layout = read_layout(job, first.layout.order, scenario.model);
  first.optimizer_sharding = scenario.optimizer_sharding;
  read_life(job, first);
  scenario.incarnations.push_back(std::move(first));
  if (const auto seed = job.integer("seed")) scenario.seed = static_cast<std::uint64_t>(*seed);
  scenario.rerun_samples = job.integer_in("rerun_samples", 1, kWorldMax).value_or(0);
  read_nodes(job, scenario);
  job.refuse_unknown();
}

IncarnationPlan read_restart(YamlMap restart, const Scenario& scenario) {
  IncarnationPlan plan = like_the_last(scenario);
  if (restart.has("layout")) plan.layout = read_layout(restart, plan.layout.order, scenario.model);
  if (restart.has("sharding")) plan.optimizer_sharding = read_sharding(restart);
  for (const char* known : {"layout", "sharding"}) static_cast<void>(restart.node(known));
  read_life(restart, plan);
  plan.other_device = restart.word("on", kDevices) == "other_device";
  plan.adopts = restart.texts("adopts");
  plan.fails = restart.text("fails").value_or("");
  if (!plan.fails.empty() && !code_named(plan.fails)) {
    restart.fail(restart.node("fails"), "knows no code " + plan.fails);
  }
  restart.refuse_unknown();
  return plan;
}

IncarnationPlan like_the_last(const Scenario& scenario) {
  IncarnationPlan plan = scenario.incarnations.back();
  plan.actions.clear();
  plan.other_device = false;
  plan.adopts.clear();
  plan.fails.clear();
  return plan;
}

}  // namespace reprise::driver
