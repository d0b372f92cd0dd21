// Writes scenarios as text.

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "driver/language/scenario.hpp"
#include "driver/language/scenario_checkpoint.hpp"
#include "driver/language/scenario_expect.hpp"
#include "driver/language/scenario_job.hpp"
#include "driver/language/scenario_layout.hpp"
#include "driver/language/scenario_modules.hpp"
#include "driver/language/scenario_steps.hpp"
#include "driver/language/scenario_writer.hpp"
#include "driver/trainers/program_steps.hpp"

namespace reprise::driver {
namespace {

void put(YAML::Emitter& out, const char* key, const std::string& value) {
  out << YAML::Key << key << YAML::Value << value;
}

template <class Items>
void put_list(YAML::Emitter& out, const char* key, const Items& items) {
  out << YAML::Key << key << YAML::Value;
  put_value(out, items);
}

void put_layout(YAML::Emitter& out, const sim::Layout& layout) {
  out << YAML::Key << "layout" << YAML::Value << YAML::Flow;
  put_map(out, layout_rows(), layout);
}

void put_module(YAML::Emitter& out, const sim::ModuleConfig& module) {
  out << YAML::Key << module.name << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "model", module.model);
  put_layout(out, module.layout);
  std::vector<std::int32_t> ranks;
  for (const auto rank : module.ranks) ranks.push_back(rank.value);
  put_list(out, "ranks", ranks);
  put_rows(out, module_rows(), module);
  out << YAML::EndMap;
}

/// Writes the layout of a job that is one model. For other jobs, writes the modules with their
/// ranks.
void put_grids(YAML::Emitter& out, const LifePlan& plan) {
  if (plan.modules.empty()) return put_layout(out, plan.layout);
  out << YAML::Key << "modules" << YAML::Value << YAML::BeginMap;
  for (const auto& module : plan.modules) put_module(out, module);
  out << YAML::EndMap;
}

/// Writes all these settings of a life if a life of the scenario has an unusual one.
void put_life(YAML::Emitter& out, const Scenario& scenario, const LifePlan& plan,
              const Rows<LifePlan>& rows) {
  const auto& lives = scenario.lives;
  const bool usual = std::all_of(lives.begin(), lives.end(),
                                 [&rows](const auto& life) { return are_usual(rows, life); });
  if (usual) return;
  for (const auto& row : rows) {
    if (row.key == "ranks" && !plan.modules.empty()) continue;  // each module lists its own
    put_row(out, row, plan);
  }
}

void put_job(YAML::Emitter& out, const Scenario& scenario) {
  out << YAML::Key << "job" << YAML::Value << YAML::BeginMap;
  const LifePlan& first = scenario.lives.front();
  if (first.modules.empty()) put(out, "model", scenario.model);
  put_grids(out, first);
  out << YAML::Key << "optimizer" << YAML::Value << YAML::Flow;
  put_map(out, optimizer_rows(), scenario);
  put_rows(out, job_rows(), scenario);
  put_life(out, scenario, first, life_rows());
  put_life(out, scenario, first, form_rows());
  out << YAML::EndMap;
}

void put_restart(YAML::Emitter& out, const Scenario& scenario, const LifePlan& plan) {
  out << YAML::BeginMap << YAML::Key << "restart" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put_grids(out, plan);
  put(out, "sharding", std::string(name_of(plan.optimizer_sharding)));
  put_life(out, scenario, plan, life_rows());
  put_life(out, scenario, plan, form_rows());
  put_rows(out, load_rows(), plan.load);
  put_rows(out, restart_rows(), plan);
  out << YAML::EndMap << YAML::EndMap;
}

void put_steps(YAML::Emitter& out, const Scenario& scenario) {
  out << YAML::Key << "steps" << YAML::Value << YAML::BeginSeq;
  for (std::size_t i = 0; i < scenario.lives.size(); ++i) {
    const LifePlan& plan = scenario.lives[i];
    if (plan.command) {
      put_command_life(out, *plan.command);
    } else if (i > 0) {
      put_restart(out, scenario, plan);
    }
    for (const auto& action : plan.actions) put_action(out, action);
  }
  out << YAML::EndSeq;
}

void put_lanes(YAML::Emitter& out, const Scenario& scenario) {
  if (scenario.lanes_reason.empty()) return;
  put_list(out, "lanes", scenario.lanes);
  put(out, "lanes_reason", scenario.lanes_reason);
}

void put_recorded(YAML::Emitter& out, const Recorded& recorded) {
  out << YAML::Key << "recorded" << YAML::Value;
  put_map(out, recorded_rows(), recorded);
}

std::string text_of(const YAML::Emitter& out) { return std::string(out.c_str()) + "\n"; }

bool begins_top_level_key(const std::string& line) {
  return !line.empty() && line[0] != ' ' && line[0] != '\t' && line[0] != '#' && line[0] != '\r';
}

}  // namespace

std::string to_yaml(const Scenario& scenario) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  put(out, "proves", scenario.proves);
  put(out, "name", scenario.name);
  if (!scenario.tags.empty()) put_list(out, "tags", scenario.tags);
  if (scenario.program) {
    put_program(out, *scenario.program);
    if (scenario.recorded) put_recorded(out, *scenario.recorded);
    out << YAML::EndMap;
    return text_of(out);
  }
  put_job(out, scenario);
  if (scenario.checkpoint != CheckpointPlan{}) {
    out << YAML::Key << "checkpoint" << YAML::Value << YAML::Flow;
    put_map(out, checkpoint_rows(), scenario.checkpoint);
  }
  put_steps(out, scenario);
  out << YAML::Key << "expect" << YAML::Value << YAML::Flow;
  put_map(out, expect_rows(), scenario.expect);
  if (!scenario.caught.empty()) put_list(out, "caught", scenario.caught);
  put_lanes(out, scenario);
  if (scenario.recorded) put_recorded(out, *scenario.recorded);
  out << YAML::EndMap;
  return text_of(out);
}

std::string with_record(const std::string& text, const Recorded& recorded) {
  std::string kept;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    if (begins_top_level_key(line)) inside = line.starts_with("recorded:");
    if (!inside) kept += line;
    at = end;
  }
  if (!kept.empty() && kept.back() != '\n') kept += '\n';
  YAML::Emitter out;
  out << YAML::BeginMap;
  put_recorded(out, recorded);
  out << YAML::EndMap;
  return kept + text_of(out);
}

}  // namespace reprise::driver
