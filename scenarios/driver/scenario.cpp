#include "scenarios/driver/scenario.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/base/print.hpp"
#include "scenarios/driver/yaml_map.hpp"
#include "sim/job/model.hpp"

namespace reprise::driver {
namespace {

constexpr std::array kLanes = {std::pair{LaneKind::kSim, std::string_view{"sim"}},
                               std::pair{LaneKind::kMpi, std::string_view{"mpi"}},
                               std::pair{LaneKind::kGpu, std::string_view{"gpu"}}};
constexpr std::int64_t kStepsMax = 10000;
constexpr std::int32_t kWorldMax = 1024;

/// `base` with the sizes that the mapping names; an order named there replaces it.
sim::Layout parse_layout_map(YamlMap map, sim::Layout base) {
  if (const auto order = map.text("order")) base.order = *order;
  for (const auto axis : sim::kAxisNames) {
    const auto size = map.integer(axis);
    if (!size) continue;
    if (*size < 1 || *size > kWorldMax) {
      map.fail(map.node(axis), "wants a size from 1 to " + std::to_string(kWorldMax));
    }
    base.set_size(axis, static_cast<std::int32_t>(*size));
  }
  map.refuse_unknown();
  try {
    sim::check(base);
  } catch (const Error& error) {
    map.fail(map.node("order"), error.message());
  }
  if (base.world_size() > kWorldMax) map.fail(map.node("order"), "is too large a world");
  return base;
}

void parse_job(YamlMap job, Scenario& scenario) {
  scenario.model = job.required("model");
  sim::model_named(scenario.model);
  IncarnationPlan first;
  first.layout = parse_layout_map(job.map("layout"), {});
  scenario.incarnations.push_back(std::move(first));
  if (const auto seed = job.integer("seed")) scenario.seed = static_cast<std::uint64_t>(*seed);
  YamlMap optimizer = job.map("optimizer");
  if (const std::string kind = optimizer.required("kind"); kind != "adam") {
    optimizer.fail(optimizer.node("kind"), "knows no optimizer '" + kind + "'; there is: adam");
  }
  scenario.optimizer_sharding = optimizer.required("sharding");
  if (scenario.optimizer_sharding != "fully_reshardable") {
    optimizer.fail(optimizer.node("sharding"), "knows no sharding '" + scenario.optimizer_sharding +
                                                   "'; there is: fully_reshardable");
  }
  optimizer.refuse_unknown();
  job.refuse_unknown();
}

/// `- save`, `- train: 3`, `- restart: {layout: {tp: 4}}`
void parse_step(const YAML::Node& node, const std::string& file, int number, Scenario& scenario) {
  const std::string what = "step " + std::to_string(number);
  if (node.IsScalar() && node.Scalar() == "save") {
    scenario.incarnations.back().actions.emplace_back(SaveAction{});
    return;
  }
  if (node.IsScalar() && node.Scalar() == "restart") {
    scenario.incarnations.push_back({scenario.incarnations.back().layout, {}});
    return;
  }
  YamlMap step(node, file, what);
  if (const auto steps = step.integer("train")) {
    if (*steps < 1 || *steps > kStepsMax) {
      step.fail(node, "trains from 1 to " + std::to_string(kStepsMax) + " iterations");
    }
    scenario.incarnations.back().actions.emplace_back(TrainAction{*steps});
  } else if (step.has("restart")) {
    YamlMap restart = step.map("restart");
    IncarnationPlan life{scenario.incarnations.back().layout, {}};
    // A new layout is given whole: what it does not name is 1, but the order stays.
    if (restart.has("layout")) {
      sim::Layout base;
      base.order = life.layout.order;
      life.layout = parse_layout_map(restart.map("layout"), base);
    }
    restart.refuse_unknown();
    scenario.incarnations.push_back(std::move(life));
  } else {
    static_cast<void>(step.text("save"));
    step.refuse_unknown();
    step.fail(node, "does nothing; steps are: train, save, restart");
  }
  step.refuse_unknown();
}

void parse_expect(YamlMap expect, Scenario& scenario) {
  if (const auto delta = expect.number("max_delta"); delta && *delta != 0) {
    expect.fail(expect.node("max_delta"), "wants max_delta 0: anything else is a difference");
  }
  if (const auto against = expect.text("against"); against && *against != "uninterrupted") {
    expect.fail(expect.node("against"), "knows one thing to compare with: uninterrupted");
  }
  if (const auto refusal = expect.text("refused")) {
    if (!code_named(*refusal)) expect.fail(expect.node("refused"), "knows no code " + *refusal);
    scenario.expect.refusal = *refusal;
  }
  expect.refuse_unknown();
}

void parse_checkpoint(YamlMap checkpoint, Scenario& scenario) {
  if (const auto strict = checkpoint.text("strictness")) {
    const auto mode = strictness_named(*strict);
    if (!mode) checkpoint.fail(checkpoint.node("strictness"), "knows no strict mode " + *strict);
    scenario.strictness = *mode;
  }
  checkpoint.refuse_unknown();
}

void parse_lanes(YamlMap& top, Scenario& scenario) {
  for (const auto& name : top.texts("lanes")) scenario.lanes.push_back(lane_named(name));
  scenario.lanes_reason = top.text("lanes_reason").value_or("");
  if (scenario.lanes.empty()) {
    scenario.lanes = {LaneKind::kSim, LaneKind::kMpi, LaneKind::kGpu};
  } else if (scenario.lanes_reason.empty()) {
    top.fail(top.node("lanes"), "leaves lanes out and gives no lanes_reason");
  }
}

void require_a_judgement(const YamlMap& top, const Scenario& scenario, const YAML::Node& root) {
  if (scenario.incarnations.size() < 2) {
    top.fail(root, "never restarts, so nothing would be loaded and compared");
  }
  bool saved = false;
  for (const auto& action : scenario.incarnations.front().actions) {
    saved = saved || std::holds_alternative<SaveAction>(action);
  }
  if (!saved) top.fail(root, "restarts before anything was saved");
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

Scenario parse_scenario(const std::string& text, const std::string& file) {
  const YAML::Node root = load_yaml(text, file);
  Scenario scenario;
  scenario.file = file;
  scenario.name = std::filesystem::path(file).stem().string();
  try {
    YamlMap top(root, file, "the scenario");
    scenario.proves = top.required("proves");
    parse_job(top.map("job"), scenario);
    const YAML::Node checkpoint = top.node("checkpoint");
    if (checkpoint.IsDefined()) parse_checkpoint({checkpoint, file, "checkpoint"}, scenario);
    const YAML::Node steps = top.node("steps");
    if (!steps.IsDefined() || !steps.IsSequence()) top.fail(root, "wants a list under 'steps'");
    int number = 0;
    for (const auto& step : steps) parse_step(step, file, ++number, scenario);
    parse_expect(top.map("expect"), scenario);
    scenario.caught = top.texts("caught");
    parse_lanes(top, scenario);
    top.refuse_unknown();
    require_a_judgement(top, scenario, root);
  } catch (const Error& error) {
    throw error.within({.file = file});
  }
  return scenario;
}

Scenario read_scenario(const std::string& file) {
  return parse_scenario(read_yaml_text(file), file);
}

std::vector<std::string> find_scenarios(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const auto& path : paths) {
    if (fs::is_directory(path)) {
      for (const auto& entry : fs::recursive_directory_iterator(path)) {
        if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
      }
    } else {
      files.push_back(path);
    }
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  if (files.empty()) {
    throw Error(Code::kUsage, "no scenario (*.yaml) under " + join(paths, ", "));
  }
  return files;
}

}  // namespace reprise::driver
