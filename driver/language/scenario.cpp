#include "driver/language/scenario.hpp"

#include <algorithm>
#include <array>

#include "core/base/print.hpp"
#include "core/base/utf8.hpp"
#include "driver/language/catalogue.hpp"
#include "driver/language/scenario_checkpoint.hpp"
#include "driver/language/scenario_expect.hpp"
#include "driver/language/scenario_job.hpp"
#include "driver/language/scenario_steps.hpp"
#include "driver/language/scenario_table.hpp"
#include "driver/trainers/program_steps.hpp"
#include "driver/yaml/yaml_map.hpp"
#include "reprise/error.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::driver {
namespace {

constexpr std::array kLanes = {std::pair{LaneKind::kSim, std::string_view{"sim"}},
                               std::pair{LaneKind::kMpi, std::string_view{"mpi"}},
                               std::pair{LaneKind::kGpu, std::string_view{"gpu"}},
                               std::pair{LaneKind::kProgram, std::string_view{"program"}}};

void read_lanes(YamlMap& top, Scenario& scenario) {
  constexpr std::array kKnown = {LaneKind::kSim, LaneKind::kMpi, LaneKind::kGpu,
                                 LaneKind::kProgram};
  scenario.lanes = top.some_of<LaneKind>("lanes", kKnown);
  scenario.lanes_reason = top.text("lanes_reason").value_or("");
  if (scenario.lanes.empty()) {
    scenario.lanes = {LaneKind::kSim, LaneKind::kMpi, LaneKind::kGpu};
  } else if (scenario.lanes_reason.empty()) {
    top.fail(top.node("lanes"), "leaves out lanes without a lanes_reason");
  }
  const bool own_store = scenario.checkpoint.store != CheckpointPlan{}.store;
  if (own_store && scenario.lanes != std::vector{LaneKind::kSim}) {
    top.fail(top.node("lanes"), "needs lanes: [sim], because its store is simulated");
  }
  const bool power_cut = scenario.checkpoint.crash == CrashModel::kPowerCut;
  if (power_cut && scenario.lanes != std::vector{LaneKind::kSim}) {
    top.fail(top.node("lanes"), "needs lanes: [sim], because a power cut is simulated");
  }
}

void read_caught(YamlMap& top, Scenario& scenario) {
  top.attempt_each(top.texts("caught"), [&](const std::string& name) {
    try {
      sim::mutant_named(name);
    } catch (const Error& error) {
      top.refuse(top.node("caught"), "names an unknown mutant under 'caught': " + error.message());
    }
    const auto& named = scenario.caught;
    if (std::find(named.begin(), named.end(), name) != named.end()) {
      top.refuse(top.node("caught"), "names '" + name + "' twice");
    }
    scenario.caught.push_back(name);
  });
}

/// Reads the other keys of a scenario whose job is a trainer.
void read_one_of_trainer(YamlMap& top, const std::string& trainers, Scenario& scenario) {
  top.attempt([&] { scenario.program = read_program(top, trainers); });
  scenario.lanes = {LaneKind::kProgram};
  scenario.lanes_reason = "its job is a trainer, which runs on the lane program";
  top.attempt([&] {
    if (top.has("recorded")) scenario.recorded = read_recorded(top.map("recorded"));
  });
  for (const char* known : {"trainer", "steps", "expect", "recorded"}) {
    top.know(known);
  }
  top.refuse_unknown();
}

/// The source of a scenario, and the list for its mistakes; without one the first is thrown.
struct Source {
  const std::string& file;
  const std::string& trainers;
  Mistakes* mistakes = nullptr;
};

/// Reads one scenario of the file. `bindings` are the bindings of the scenario's row.
Scenario read_one(const YAML::Node& root, const Source& source, Bindings& bindings) {
  Scenario scenario;
  scenario.file = source.file;
  YamlMap top(root, source.file, "the scenario", &bindings);
  top.know("each");
  top.attempt([&] { scenario.proves = top.required("proves"); });
  scenario.name = top.text("name").value_or(name_of_file(source.file));
  scenario.tags = top.texts("tags");
  if (top.has("trainer")) {
    read_one_of_trainer(top, source.trainers, scenario);
    return scenario;
  }
  bool sound = top.attempt([&] { read_job(top.map("job"), scenario); });
  if (scenario.lives.empty()) scenario.lives.emplace_back();
  const auto read = [&](auto part, bool judged = true) {
    sound = top.attempt(part, judged) && sound;
  };
  read([&] {
    if (top.has("checkpoint")) read_checkpoint(top.map("checkpoint"), scenario.checkpoint);
  });
  const auto steps = [&] {
    if (!top.has("steps")) top.refuse(root, "needs a list under 'steps'");
    read_steps(top, scenario);
  };
  read(steps, sound);  // whether a step makes sense depends on the job
  read([&] { read_expect(top.map("expect"), scenario.expect); });
  read_caught(top, scenario);
  read([&] { read_lanes(top, scenario); });
  read([&] {
    if (top.has("recorded")) scenario.recorded = read_recorded(top.map("recorded"));
  });
  for (const char* known : {"job", "checkpoint", "steps", "expect", "recorded"}) {
    top.know(known);
  }
  top.refuse_unknown();
  if (sound) require_sense(top, scenario, root);
  return scenario;
}

void require_all_used(const YamlMap& top, const YAML::Node& each, const Bindings& bindings) {
  for (const auto& [name, value] : bindings.values) {
    if (name.ends_with(".next") || bindings.used.contains(name)) continue;
    if (bindings.used.contains(name + ".next")) continue;
    top.fail(each, "has an axis '" + name + "' that nothing uses; write $" + name +
                       " where its values should be used");
  }
}

std::vector<Scenario> read_table(const YAML::Node& root, const Source& source) {
  YamlMap top(root, source.file, "the scenario");
  const YAML::Node each = top.node("each");
  if (top.has("recorded")) {
    top.fail(root, "records one outcome for a table; record a row in its own file");
  }
  std::vector<Scenario> scenarios;
  const auto world = [&](Bindings& before) {
    Scenario scenario;
    YamlMap bound(root, source.file, "the scenario", &before);
    if (bound.has("trainer")) {
      return static_cast<std::int32_t>(world_of_program(bound, source.trainers));
    }
    read_job(bound.map("job"), scenario);
    return scenario.lives.front().world_size();
  };
  for (auto& row : table_rows(each, source.file, world)) {
    row.bindings.mistakes = source.mistakes;
    const auto read = [&] {
      Scenario scenario = read_one(root, source, row.bindings);
      const bool right = source.mistakes == nullptr || source.mistakes->empty();
      if (right) require_all_used(top, each, row.bindings);
      scenario.row = row.name;
      scenario.name += row.name;
      scenarios.push_back(std::move(scenario));
    };
    YamlMap(root, source.file, "the scenario", &row.bindings).attempt(read);
  }
  return scenarios;
}

/// Refuses a file whose name can't be the name of a run: checkpoints and reports hold UTF-8 alone.
void require_file_name(const std::string& file) {
  if (is_utf8(name_of_file(file))) return;
  throw MistakeError(
      {file, -1, -1,
       "the file's name is not UTF-8 but would become the scenario's name; rename the file"});
}

std::vector<Scenario> read_root(const YAML::Node& root, const Source& source) {
  require_file_name(source.file);
  Bindings none{.mistakes = source.mistakes};
  const bool table = YamlMap(root, source.file, "the scenario", &none).has("each");
  if (table) return read_table(root, source);
  return {read_one(root, source, none)};
}

}  // namespace

std::int32_t LifePlan::world_size() const {
  std::int32_t last = -1;
  for (const auto& module : modules) {
    for (const auto rank : module.ranks) last = std::max(last, rank.value);
  }
  for (const auto rank : ranks) last = std::max(last, rank);
  return last < 0 ? layout.world_size() : last + 1;
}

bool LifePlan::has_member(std::int32_t rank) const {
  if (rank < 0 || rank >= world_size()) return false;
  return ranks.empty() || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

std::string LifePlan::members_text() const {
  if (ranks.empty()) return "0 to " + std::to_string(world_size() - 1);
  std::vector<std::int32_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  return join(sorted, ", ");
}

std::string name_of(const Failing& failing) {
  switch (failing.how) {
    case Failing::How::kNever:
      return "";
    case Failing::How::kBy:
      return std::string(name_of(failing.code));
    case Failing::How::kAny:
      return "any";
    case Failing::How::kMaybe:
      return "maybe";
  }
  return "";
}

std::string_view name_of(CheckpointKind kind) {
  return kind == CheckpointKind::kWeights ? "weights" : "training";
}

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
              "there is no lane '" + std::string(name) + "'; available: sim, mpi, gpu, program");
}

std::vector<Scenario> parse_scenarios(const std::string& text, const std::string& file,
                                      const std::string& trainers) try {
  return read_root(load_yaml(text, file), {file, trainers});
} catch (const Error& error) {
  throw error.within({.file = file});
}

std::vector<Scenario> parse_scenarios(const std::string& text, const std::string& file,
                                      const std::string& trainers, Mistakes& mistakes) {
  std::vector<Scenario> scenarios;
  try {
    scenarios = read_root(load_yaml(text, file), {file, trainers, &mistakes});
  } catch (const Unread&) {  // its mistake is in the list
  } catch (const Error& error) {
    mistakes.add_sense(error, file);
  }
  if (!mistakes.empty()) scenarios.clear();
  return scenarios;
}

Scenario parse_scenario(const std::string& text, const std::string& file) {
  auto scenarios = parse_scenarios(text, file);
  if (scenarios.size() == 1 && scenarios.front().row.empty()) return std::move(scenarios.front());
  throw Error(Code::kUsage, "is a table of scenarios, but a single one is needed", {.file = file});
}

Scenario read_scenario(const std::string& file) {
  return parse_scenario(read_yaml_text(file), file);
}

}  // namespace reprise::driver
