// Scenarios as text.

#include <yaml-cpp/yaml.h>

#include "scenarios/driver/scenario.hpp"
#include "scenarios/driver/scenario_writer.hpp"

namespace reprise::driver {
namespace {

void put(YAML::Emitter& out, const char* key, const std::string& value) {
  out << YAML::Key << key << YAML::Value << value;
}

void put(YAML::Emitter& out, const char* key, std::int64_t value) {
  out << YAML::Key << key << YAML::Value << value;
}

template <class Items>
void put_list(YAML::Emitter& out, const char* key, const Items& items) {
  out << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginSeq;
  for (const auto& item : items) out << item;
  out << YAML::EndSeq;
}

/// The order always: a layout that names none keeps the one before.
void put_layout(YAML::Emitter& out, const sim::Layout& layout) {
  const sim::Layout one;
  out << YAML::Key << "layout" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "order", layout.order);
  const auto put_size = [&](std::string_view name) {
    if (layout.size_of(name) == one.size_of(name)) return;
    put(out, std::string(name).c_str(), std::int64_t{layout.size_of(name)});
  };
  for (const auto name : sim::kAxisNames) put_size(name);
  for (const auto name : sim::kFurtherSizes) put_size(name);
  if (!layout.stage_layers.empty()) put_list(out, "stage_layers", layout.stage_layers);
  out << YAML::EndMap;
}

void put_job(YAML::Emitter& out, const Scenario& scenario) {
  out << YAML::Key << "job" << YAML::Value << YAML::BeginMap;
  put(out, "model", scenario.model);
  put_layout(out, scenario.incarnations.front().layout);
  out << YAML::Key << "optimizer" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "kind", "adam");
  put(out, "sharding", scenario.optimizer_sharding);
  if (scenario.shard_dim != 0) put(out, "dim", scenario.shard_dim);
  out << YAML::EndMap;
  put(out, "seed", static_cast<std::int64_t>(scenario.seed));
  if (scenario.ranks_per_node > 0) {
    put(out, "ranks_per_node", std::int64_t{scenario.ranks_per_node});
  }
  out << YAML::EndMap;
}

void put_restart(YAML::Emitter& out, const IncarnationPlan& plan) {
  out << YAML::BeginMap << YAML::Key << "restart" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put_layout(out, plan.layout);
  put(out, "sharding", plan.optimizer_sharding);
  out << YAML::EndMap << YAML::EndMap;
}

void put_action(YAML::Emitter& out, const Action& action) {
  if (const auto* train = std::get_if<TrainAction>(&action)) {
    out << YAML::BeginMap;
    put(out, "train", train->steps);
    out << YAML::EndMap;
  } else {
    out << (std::holds_alternative<SaveAction>(action) ? "save" : "load");
  }
}

void put_steps(YAML::Emitter& out, const Scenario& scenario) {
  out << YAML::Key << "steps" << YAML::Value << YAML::BeginSeq;
  for (std::size_t i = 0; i < scenario.incarnations.size(); ++i) {
    if (i > 0) put_restart(out, scenario.incarnations[i]);
    for (const auto& action : scenario.incarnations[i].actions) put_action(out, action);
  }
  out << YAML::EndSeq;
}

void put_expect(YAML::Emitter& out, const Expectation& expect) {
  out << YAML::Key << "expect" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "max_delta", std::int64_t{0});
  put(out, "against", "uninterrupted");
  if (expect.refusal) put(out, "refused", *expect.refusal);
  if (!expect.refusal_says.empty()) put(out, "refused_says", expect.refusal_says);
  if (expect.elements_least > 0) {
    put(out, "elements_at_least", static_cast<std::int64_t>(expect.elements_least));
  }
  if (!expect.every_rank_owns) put(out, "ranks_own", "some");
  out << YAML::EndMap;
}

void put_lanes(YAML::Emitter& out, const Scenario& scenario) {
  if (scenario.lanes_reason.empty()) return;
  std::vector<std::string> names;
  for (const auto lane : scenario.lanes) names.emplace_back(name_of(lane));
  put_list(out, "lanes", names);
  put(out, "lanes_reason", scenario.lanes_reason);
}

void put_recorded(YAML::Emitter& out, const Recorded& recorded) {
  out << YAML::Key << "recorded" << YAML::Value << YAML::BeginMap;
  put(out, "verdict", recorded.verdict);
  if (!recorded.code.empty()) put(out, "code", recorded.code);
  if (recorded.first_difference) {
    const RecordedDifference& first = *recorded.first_difference;
    out << YAML::Key << "first_difference" << YAML::Value << YAML::BeginMap;
    put(out, "rank", std::int64_t{first.rank});
    put(out, "key", first.key);
    put_list(out, "index", first.index);
    put(out, "saved", first.saved);
    put(out, "loaded", first.loaded);
    out << YAML::EndMap;
  }
  if (!recorded.event_hash.empty()) put(out, "event_hash", recorded.event_hash);
  if (!recorded.commit.empty()) put(out, "commit", recorded.commit);
  if (!recorded.build.empty()) put(out, "build", recorded.build);
  if (!recorded.mutant.empty()) put(out, "mutant", recorded.mutant);
  put(out, "seed", static_cast<std::int64_t>(recorded.seed));
  out << YAML::EndMap;
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
  put_job(out, scenario);
  if (scenario.strictness != Strictness::kRaiseAll) {
    out << YAML::Key << "checkpoint" << YAML::Value << YAML::Flow << YAML::BeginMap;
    put(out, "strictness", std::string(name_of(scenario.strictness)));
    out << YAML::EndMap;
  }
  put_steps(out, scenario);
  put_expect(out, scenario.expect);
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
