#include "scenarios/driver/scenario.hpp"

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/print.hpp"
#include "scenarios/driver/catalogue.hpp"
#include "scenarios/driver/scenario_table.hpp"
#include "scenarios/driver/yaml_map.hpp"
#include "sim/job/model.hpp"
#include "sim/job/sharding.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::driver {
namespace {

constexpr std::array kLanes = {std::pair{LaneKind::kSim, std::string_view{"sim"}},
                               std::pair{LaneKind::kMpi, std::string_view{"mpi"}},
                               std::pair{LaneKind::kGpu, std::string_view{"gpu"}}};
constexpr std::int64_t kStepsMax = 10000;
constexpr std::int32_t kWorldMax = 1024;
constexpr std::int64_t kDimMax = 15;

/// A whole number under `key` that lies in the range.
std::optional<std::int64_t> integer_in(YamlMap& map, std::string_view key, std::int64_t least,
                                       std::int64_t most) {
  const auto value = map.integer(key);
  if (!value || (*value >= least && *value <= most)) return value;
  map.fail(map.node(key), "wants " + std::string(key) + " from " + std::to_string(least) + " to " +
                              std::to_string(most) + ", not " + std::to_string(*value));
}

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
    if (const auto size = integer_in(map, name, 1, kWorldMax)) {
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
  scenario.shard_dim = integer_in(optimizer, "dim", 0, kDimMax).value_or(0);
  optimizer.refuse_unknown();
}

void read_nodes(YamlMap& job, Scenario& scenario) {
  const std::int32_t world = scenario.incarnations.front().layout.world_size();
  const auto per_node = integer_in(job, "ranks_per_node", 1, kWorldMax);
  const auto nodes = integer_in(job, "nodes", 1, kWorldMax);
  if (per_node && nodes) job.fail(job.node("nodes"), "says both nodes and ranks_per_node");
  if (nodes && world % *nodes != 0) {
    job.fail(job.node("nodes"), "can't put " + std::to_string(world) + " ranks evenly on " +
                                    std::to_string(*nodes) + " nodes; say ranks_per_node");
  }
  if (nodes) scenario.ranks_per_node = world / static_cast<std::int32_t>(*nodes);
  if (per_node) scenario.ranks_per_node = static_cast<std::int32_t>(*per_node);
}

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
  scenario.incarnations.push_back(std::move(first));
  if (const auto seed = job.integer("seed")) scenario.seed = static_cast<std::uint64_t>(*seed);
  read_nodes(job, scenario);
  job.refuse_unknown();
}

IncarnationPlan like_the_last(const Scenario& scenario) {
  IncarnationPlan plan = scenario.incarnations.back();
  plan.actions.clear();
  return plan;
}

void read_restart(YamlMap restart, Scenario& scenario) {
  IncarnationPlan plan = like_the_last(scenario);
  if (restart.has("layout")) plan.layout = read_layout(restart, plan.layout.order, scenario.model);
  if (restart.has("sharding")) plan.optimizer_sharding = read_sharding(restart);
  for (const char* known : {"layout", "sharding"}) static_cast<void>(restart.node(known));
  restart.refuse_unknown();
  scenario.incarnations.push_back(std::move(plan));
}

constexpr const char* kSteps = "steps are: train: N, save, load, restart";

/// `- save`, `- load`, `- restart`
void read_word(const YamlMap& top, const YAML::Node& node, int number, Scenario& scenario) {
  auto& actions = scenario.incarnations.back().actions;
  const std::string& word = node.Scalar();
  if (word == "save") {
    actions.emplace_back(SaveAction{});
  } else if (word == "load") {
    actions.emplace_back(LoadAction{});
  } else if (word == "restart") {
    scenario.incarnations.push_back(like_the_last(scenario));
  } else {
    top.fail(node, "has a step " + std::to_string(number) + " '" + word + "'; " + kSteps);
  }
}

/// `- train: 3`, `- restart: {layout: {tp: 4}}`
void read_step(YamlMap step, const YAML::Node& node, Scenario& scenario) {
  if (const auto steps = integer_in(step, "train", 0, kStepsMax)) {
    scenario.incarnations.back().actions.emplace_back(TrainAction{*steps});
  } else if (step.has("restart")) {
    read_restart(step.map("restart"), scenario);
  } else {
    for (const char* known : {"save", "load", "restart"}) static_cast<void>(step.node(known));
    step.refuse_unknown();
    step.fail(node, std::string("does nothing; ") + kSteps);
  }
  step.refuse_unknown();
}

void read_steps(YamlMap& top, Scenario& scenario) {
  int number = 0;
  for (const auto& step : top.items("steps")) {
    ++number;
    if (step.IsScalar()) {
      read_word(top, step, number, scenario);
    } else {
      read_step({step, top.file(), "step " + std::to_string(number), top.bindings()}, step,
                scenario);
    }
  }
}

void read_refusal(YamlMap& expect, Expectation& expected) {
  expected.refusal = expect.text("refused");
  expected.refusal_says = expect.text("refused_says").value_or("");
  if (expected.refusal && !code_named(*expected.refusal)) {
    expect.fail(expect.node("refused"), "knows no code " + *expected.refusal);
  }
  if (!expected.refusal && !expected.refusal_says.empty()) {
    expect.fail(expect.node("refused_says"), "says what a refusal says, and expects none");
  }
}

void read_expect(YamlMap expect, Scenario& scenario) {
  if (const auto delta = expect.number("max_delta"); delta && *delta != 0) {
    expect.fail(expect.node("max_delta"), "wants max_delta 0: anything else is a difference");
  }
  if (const auto against = expect.text("against"); against && *against != "uninterrupted") {
    expect.fail(expect.node("against"), "knows one thing to compare with: uninterrupted");
  }
  read_refusal(expect, scenario.expect);
  if (const auto least = integer_in(expect, "elements_at_least", 1, INT64_MAX)) {
    scenario.expect.elements_least = static_cast<std::uint64_t>(*least);
  }
  if (const auto owns = expect.text("ranks_own")) {
    if (*owns != "all" && *owns != "some") {
      expect.fail(expect.node("ranks_own"), "wants ranks_own: all, or some");
    }
    scenario.expect.every_rank_owns = *owns == "all";
  }
  expect.refuse_unknown();
}

void read_checkpoint(YamlMap checkpoint, Scenario& scenario) {
  if (const auto strict = checkpoint.text("strictness")) {
    const auto mode = strictness_named(*strict);
    if (!mode) checkpoint.fail(checkpoint.node("strictness"), "knows no strict mode " + *strict);
    scenario.strictness = *mode;
  }
  checkpoint.refuse_unknown();
}

void read_lanes(YamlMap& top, Scenario& scenario) {
  for (const auto& name : top.texts("lanes")) scenario.lanes.push_back(lane_named(name));
  scenario.lanes_reason = top.text("lanes_reason").value_or("");
  if (scenario.lanes.empty()) {
    scenario.lanes = {LaneKind::kSim, LaneKind::kMpi, LaneKind::kGpu};
  } else if (scenario.lanes_reason.empty()) {
    top.fail(top.node("lanes"), "leaves lanes out and gives no lanes_reason");
  }
}

RecordedDifference read_difference(YamlMap map) {
  RecordedDifference difference;
  difference.rank = static_cast<std::int32_t>(integer_in(map, "rank", 0, kWorldMax).value_or(0));
  difference.key = map.required("key");
  for (const auto& item : map.items("index")) {
    std::int64_t index = 0;
    if (!item.IsScalar() || !YAML::convert<std::int64_t>::decode(item, index)) {
      map.fail(item, "wants whole numbers under 'index'");
    }
    difference.index.push_back(index);
  }
  difference.saved = map.required("saved");
  difference.loaded = map.required("loaded");
  map.refuse_unknown();
  return difference;
}

Recorded read_recorded(YamlMap map) {
  Recorded recorded;
  recorded.verdict = map.required("verdict");
  recorded.code = map.text("code").value_or("");
  if (map.has("first_difference")) {
    recorded.first_difference = read_difference(map.map("first_difference"));
  }
  recorded.event_hash = map.text("event_hash").value_or("");
  recorded.commit = map.text("commit").value_or("");
  recorded.build = map.text("build").value_or("");
  recorded.mutant = map.text("mutant").value_or("");
  recorded.seed = static_cast<std::uint64_t>(integer_in(map, "seed", 0, INT64_MAX).value_or(1));
  static_cast<void>(map.node("first_difference"));
  map.refuse_unknown();
  return recorded;
}

bool saves(const IncarnationPlan& plan) {
  return std::any_of(plan.actions.begin(), plan.actions.end(), [](const Action& action) {
    return std::holds_alternative<SaveAction>(action);
  });
}

/// Something is loaded, and nothing before it was saved.
void require_a_judgement(const YamlMap& top, const Scenario& scenario, const YAML::Node& root) {
  bool loads = scenario.incarnations.size() > 1;
  bool saved = false;
  for (const auto& action : scenario.incarnations.front().actions) {
    saved = saved || std::holds_alternative<SaveAction>(action);
    if (!std::holds_alternative<LoadAction>(action)) continue;
    loads = true;
    if (!saved) top.fail(root, "loads before anything was saved");
  }
  if (!loads) top.fail(root, "never restarts and never loads, so nothing would be compared");
  if (!saves(scenario.incarnations.front())) top.fail(root, "restarts before anything was saved");
}

void read_caught(YamlMap& top, Scenario& scenario) {
  for (const auto& name : top.texts("caught")) {
    try {
      sim::mutant_named(name);
    } catch (const Error& error) {
      top.fail(top.node("caught"), "is to catch what is not there: " + error.message());
    }
    const auto& named = scenario.caught;
    if (std::find(named.begin(), named.end(), name) != named.end()) {
      top.fail(top.node("caught"), "names '" + name + "' twice");
    }
    scenario.caught.push_back(name);
  }
}

/// One scenario of the file; `bindings` are its row's.
Scenario read_one(const YAML::Node& root, const std::string& file, Bindings* bindings) {
  Scenario scenario;
  scenario.file = file;
  YamlMap top(root, file, "the scenario", bindings);
  static_cast<void>(top.node("each"));
  scenario.proves = top.required("proves");
  scenario.name = top.text("name").value_or(name_of_file(file));
  scenario.tags = top.texts("tags");
  read_job(top.map("job"), scenario);
  if (top.has("checkpoint")) read_checkpoint(top.map("checkpoint"), scenario);
  if (!top.has("steps")) top.fail(root, "wants a list under 'steps'");
  read_steps(top, scenario);
  read_expect(top.map("expect"), scenario);
  read_caught(top, scenario);
  read_lanes(top, scenario);
  if (top.has("recorded")) scenario.recorded = read_recorded(top.map("recorded"));
  for (const char* known : {"checkpoint", "recorded"}) static_cast<void>(top.node(known));
  top.refuse_unknown();
  require_a_judgement(top, scenario, root);
  return scenario;
}

void require_all_used(const YamlMap& top, const YAML::Node& each, const Bindings& bindings) {
  for (const auto& [name, value] : bindings.values) {
    if (bindings.used.contains(name)) continue;
    top.fail(each, "has an axis '" + name + "' that nothing uses; say $" + name +
                       " where its values belong");
  }
}

std::vector<Scenario> read_table(const YAML::Node& root, const std::string& file) {
  YamlMap top(root, file, "the scenario");
  const YAML::Node each = top.node("each");
  if (top.has("recorded")) {
    top.fail(root, "records one outcome for a table; record one row in a file of its own");
  }
  std::vector<Scenario> scenarios;
  for (auto& row : table_rows(each, file)) {
    Scenario scenario = read_one(root, file, &row.bindings);
    require_all_used(top, each, row.bindings);
    scenario.row = row.name;
    scenario.name += row.name;
    scenarios.push_back(std::move(scenario));
  }
  return scenarios;
}

}  // namespace

std::string_view name_of(LaneKind lane) {
  for (const auto& [known, name] : kLanes) {
    if (known == lane) return name;
  }
  return "";
}

LaneKind lane_named(std::string_view name) {
  for (const auto& [lane, known] : kLanes) {
    if (known == name) return lane;
  }
  throw Error(Code::kUsage,
              "no lane is called '" + std::string(name) + "'; there are: sim, mpi, gpu");
}

std::vector<Scenario> parse_scenarios(const std::string& text, const std::string& file) try {
  const YAML::Node root = load_yaml(text, file);
  const bool table = YamlMap(root, file, "the scenario").has("each");
  if (table) return read_table(root, file);
  Bindings none;
  return {read_one(root, file, &none)};
} catch (const Error& error) {
  throw error.within({.file = file});
}

Scenario parse_scenario(const std::string& text, const std::string& file) {
  auto scenarios = parse_scenarios(text, file);
  if (scenarios.size() == 1 && scenarios.front().row.empty()) return std::move(scenarios.front());
  throw Error(Code::kUsage, "is a table of scenarios, and one is wanted", {.file = file});
}

Scenario read_scenario(const std::string& file) {
  return parse_scenario(read_yaml_text(file), file);
}

}  // namespace reprise::driver
