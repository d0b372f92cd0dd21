#include "cli/arguments/release_policy.hpp"

#include <array>
#include <limits>

#include "driver/runs/property.hpp"
#include "driver/yaml/yaml_map.hpp"
#include "properties/finding_code.hpp"
#include "reprise/error.hpp"
#include "sim/job/optimizer/sharding.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::cli {
namespace {

using driver::YamlMap;

std::uint64_t count_in(YamlMap& map, std::string_view key, std::int64_t least) {
  const auto count = map.integer_in(key, least, std::numeric_limits<std::int64_t>::max());
  return static_cast<std::uint64_t>(count.value_or(0));
}

void read_space(const YAML::Node& item, const std::string& file, reports::LaneFloor& lane) {
  YamlMap map(item, file, "the space of layouts");
  map.required("sharding");
  const auto names = sim::sharding_names();
  reports::Exhaustive space;
  space.sharding = map.word("sharding", names).value_or("");
  space.hsdp = map.flag("hsdp").value_or(false);
  map.required("pairs");
  const std::uint64_t pairs = count_in(map, "pairs", 1);
  map.refuse_unknown();
  if (!lane.exhaustive.try_emplace(space.space(), pairs).second) {
    map.fail(item, "occurs twice: " + space.space());
  }
}

reports::LaneFloor read_lane(YamlMap map, const YAML::Node& node) {
  constexpr std::array<std::string_view, 1> kAll = {"all"};
  reports::LaneFloor lane;
  lane.unnamed = {.scenarios = count_in(map, "scenarios", 1),
                  .skipped = count_in(map, "skipped", 0)};
  lane.runs_doubled = count_in(map, "doubled", 1);
  lane.cases = count_in(map, "property_cases", 1);
  lane.timelines = count_in(map, "timelines", 1);
  if (map.word("properties", kAll)) {
    for (const auto& property : driver::properties()) {
      lane.properties[std::string(property.name)] = 0;
    }
  }
  if (map.word("mutants", kAll)) {
    for (const auto& mutant : sim::mutants()) lane.mutants.emplace(mutant.name);
  }
  if (map.has("exhaustive")) {
    for (const auto& item : map.items("exhaustive")) read_space(item, map.file(), lane);
  }
  map.know("exhaustive");
  map.refuse_unknown();
  if (map.keys().empty()) {
    map.fail(node,
             "demands nothing; write what its report must show, such as 'scenarios: 1', or leave "
             "the lane out");
  }
  return lane;
}

reports::ReportLane lane_at(YamlMap& map, const std::string& name, const YAML::Node& node) {
  const auto lane = reports::named<reports::ReportLane>(name);
  if (!lane)
    map.fail(node, "has an unknown lane: " + is_none_of(words_of(reports::ReportLane{}), name));
  return *lane;
}

reports::Floors read_lanes(YamlMap lanes, const YAML::Node& node) {
  reports::Floors policy;
  for (const auto& name : lanes.keys()) {
    const auto lane = lane_at(lanes, name, lanes.node(name));
    policy[lane] = read_lane(lanes.map(name), lanes.node(name));
  }
  if (policy.empty()) lanes.fail(node, "names no lane, so it demands nothing");
  return policy;
}

std::string some_text(YamlMap& map, std::string_view key) {
  std::string text = map.required(key);
  if (text.empty()) map.fail(map.node(key), "has nothing under '" + std::string(key) + "'");
  return text;
}

/// Reads which scenario, property or mutant an entry is about.
void read_subject(YamlMap& map, const YAML::Node& item, reports::KnownFailure& known) {
  using Kind = reports::KnownFailure::Kind;
  std::size_t subjects = 0;
  for (const Kind kind : {Kind::kScenario, Kind::kProperty, Kind::kMutant}) {
    const auto name = map.text(name_of(kind));
    if (!name) continue;
    ++subjects;
    known.kind = kind;
    known.name = *name;
  }
  if (subjects != 1) map.fail(item, "must name one scenario, one property or one mutant");
}

std::string read_code(YamlMap& map, reports::KnownFailure::Kind kind) {
  if (kind == reports::KnownFailure::Kind::kMutant) {
    constexpr std::array<std::string_view, 1> kSurvived = {"MUTANT_SURVIVED"};
    return map.word("code", kSurvived).value_or(std::string(kSurvived[0]));
  }
  std::string code = map.required("code");
  if (!finding_code_named(code)) map.fail(map.node("code"), "has the unknown code '" + code + "'");
  return code;
}

reports::KnownFailure read_known_failure(const YAML::Node& item, const std::string& file) {
  YamlMap map(item, file, "the known failure");
  reports::KnownFailure known;
  known.place = file + ":" + std::to_string(item.Mark().line + 1);
  read_subject(map, item, known);
  if (const auto lane = map.text("lane")) known.lane = lane_at(map, *lane, map.node("lane"));
  known.code = read_code(map, known.kind);
  known.reason = some_text(map, "reason");
  known.owner = some_text(map, "owner");
  const std::string expires = map.required("expires");
  const auto date = reports::date_named(expires);
  if (!date) {
    map.fail(map.node("expires"),
             "needs a date such as 2026-01-31 under 'expires', not '" + expires + "'");
  }
  known.expires = *date;
  map.refuse_unknown();
  return known;
}

}  // namespace

reports::Demand read_policy(const std::string& file) {
  YamlMap root(driver::load_yaml(driver::read_yaml_text(file), file), file, "the policy");
  for (const char* key : {"lanes", "known_failures"}) root.know(key);
  root.refuse_unknown();
  reports::Demand policy;
  if (root.has("known_failures")) {
    for (const auto& item : root.items("known_failures")) {
      policy.known_failures.push_back(read_known_failure(item, file));
    }
  }
  if (root.has("lanes") || policy.known_failures.empty()) {
    policy.lanes = read_lanes(root.map("lanes"), root.node("lanes"));
  }
  return policy;
}

}  // namespace reprise::cli
