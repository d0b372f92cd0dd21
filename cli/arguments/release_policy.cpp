#include "cli/arguments/release_policy.hpp"

#include <array>
#include <limits>

#include "driver/yaml/yaml_map.hpp"
#include "reprise/error.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::cli {
namespace {

using driver::YamlMap;

std::uint64_t count_in(YamlMap& map, std::string_view key, std::int64_t least) {
  const auto count = map.integer_in(key, least, std::numeric_limits<std::int64_t>::max());
  return static_cast<std::uint64_t>(count.value_or(0));
}

void read_space(const YAML::Node& item, const std::string& file, reports::LanePolicy& lane) {
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
    map.fail(item, "stands twice: " + space.space());
  }
}

reports::LanePolicy read_lane(YamlMap map, const YAML::Node& node) {
  constexpr std::array<std::string_view, 1> kAll = {"all"};
  reports::LanePolicy lane{.scenarios = count_in(map, "scenarios", 1),
                           .skipped = count_in(map, "skipped", 0),
                           .doubled = count_in(map, "doubled", 1),
                           .property_cases = count_in(map, "property_cases", 1),
                           .all_properties = map.word("properties", kAll).has_value(),
                           .timelines = count_in(map, "timelines", 1),
                           .all_mutants = map.word("mutants", kAll).has_value()};
  if (map.has("exhaustive")) {
    for (const auto& item : map.items("exhaustive")) read_space(item, map.file(), lane);
  }
  static_cast<void>(map.node("exhaustive"));  // marks the key as known
  map.refuse_unknown();
  if (map.keys().empty()) {
    map.fail(node,
             "demands nothing; say what its report must show, as in 'scenarios: 1', or leave the "
             "lane out");
  }
  return lane;
}

}  // namespace

reports::Policy read_policy(const std::string& file) {
  YamlMap root(driver::load_yaml(driver::read_yaml_text(file), file), file, "the policy");
  YamlMap lanes = root.map("lanes");
  root.refuse_unknown();
  reports::Policy policy;
  for (const auto& name : lanes.keys()) {
    const auto lane = reports::report_lane_named(name);
    if (!lane) lanes.fail(lanes.node(name), "has an unknown lane: " + reports::no_lane(name));
    policy[*lane] = read_lane(lanes.map(name), lanes.node(name));
  }
  if (policy.empty()) lanes.fail(root.node("lanes"), "names no lane, so it demands nothing");
  return policy;
}

}  // namespace reprise::cli
