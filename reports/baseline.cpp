#include "reports/baseline.hpp"

#include "reports/document.hpp"

namespace reprise::reports {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kBaselineVersion = 1;

Json to_json_value(const ScenarioFloor& floor) {
  if (!floor.skipped.empty()) return {{"skipped", floor.skipped}};
  return {{"compared", floor.compared.leaves}, {"elements", floor.compared.elements}};
}

Json to_json_value(const LaneFloor& lane) {
  Json scenarios = Json::object();
  for (const auto& [name, floor] : lane.scenarios) scenarios[name] = to_json_value(floor);
  const LaneTotals totals = totals_of(lane);
  return {{"scenarios", scenarios},
          {"properties", lane.properties},
          {"mutants", lane.mutants},
          {"runs_doubled", lane.runs_doubled},
          {"totals",
           {{"scenarios", totals.scenarios},
            {"skipped", totals.skipped},
            {"elements", totals.elements}}}};
}

ScenarioFloor scenario_at(const Node& node) {
  if (node.has("skipped")) {
    const Node why = node.at("skipped");
    if (why.text().empty()) why.refuse("gives no reason");
    return {.compared = {}, .skipped = why.text()};
  }
  return {
      .compared = {.leaves = node.at("compared").count(), .elements = node.at("elements").count()}};
}

void check_total(const Node& node, std::uint64_t sum) {
  if (node.count() == sum) return;
  node.refuse("is " + std::to_string(node.count()) + ", but the entries make " +
              std::to_string(sum) + "; write the baseline again with --write-baseline");
}

LaneFloor lane_at(const Node& node) {
  LaneFloor lane;
  for (const auto& [name, entry] : node.at("scenarios").entries()) {
    lane.scenarios[name] = scenario_at(entry);
  }
  for (const auto& [name, cases] : node.at("properties").entries()) {
    lane.properties[name] = cases.count();
  }
  for (const auto& name : node.at("mutants").texts()) lane.mutants.insert(name);
  lane.runs_doubled = node.at("runs_doubled").count();
  const LaneTotals sums = totals_of(lane);
  const Node totals = node.at("totals");
  check_total(totals.at("scenarios"), sums.scenarios);
  check_total(totals.at("skipped"), sums.skipped);
  check_total(totals.at("elements"), sums.elements);
  return lane;
}

Baseline parse_floors(const Node& root) {
  const Node version = root.at("baseline_version");
  if (version.integer() != kBaselineVersion) {
    version.refuse("is " + std::to_string(version.integer()) + "; this program reads " +
                   std::to_string(kBaselineVersion));
  }
  Baseline baseline;
  for (const auto& [name, lane] : root.at("lanes").entries()) baseline[name] = lane_at(lane);
  return baseline;
}

Baseline from_report(const std::string& text, const std::string& file) {
  const Report report = parse_report(text, file);
  const auto refusals = weigh(report);
  if (!refusals.empty()) {
    const Refusal& first = refusals.front();
    throw ReadError(file + ": is no report of an accepted run: " + first.subject +
                    (first.subject.empty() ? "" : ": ") + first.reason);
  }
  return baseline_of({&report, 1});
}

/// Each lane must demand that something was run, or anything would do.
void check_demands(const Baseline& baseline, const std::string& file) {
  if (baseline.empty()) throw ReadError(file + ": lanes: there is none, so it demands nothing");
  for (const auto& [name, lane] : baseline) {
    const bool demands =
        totals_of(lane).scenarios != 0 || !lane.properties.empty() || !lane.mutants.empty();
    if (!demands) throw ReadError(file + ": lanes[" + name + "]: demands nothing");
  }
}

}  // namespace

LaneTotals totals_of(const LaneFloor& lane) {
  LaneTotals totals;
  for (const auto& [name, floor] : lane.scenarios) {
    ++(floor.skipped.empty() ? totals.scenarios : totals.skipped);
    totals.elements = saturating_sum(totals.elements, floor.compared.elements);
  }
  return totals;
}

LaneFloor floor_of(const Report& report) {
  LaneFloor lane;
  for (const auto& result : report.scenarios) {
    lane.scenarios[result.name] = {.compared = compared_of(result)};
  }
  for (const auto& skipped : report.skipped) {
    lane.scenarios[skipped.scenario] = {.compared = {}, .skipped = skipped.reason};
  }
  for (const auto& property : report.properties) lane.properties[property.name] = property.cases;
  for (const auto& mutant : report.mutants) lane.mutants.insert(mutant.name);
  lane.runs_doubled = report.runs_doubled;
  return lane;
}

Baseline baseline_of(std::span<const Report> reports) {
  Baseline baseline;
  for (const auto& report : reports) baseline[report.lane] = floor_of(report);
  return baseline;
}

std::string to_json(const Baseline& baseline) {
  Json lanes = Json::object();
  for (const auto& [name, lane] : baseline) lanes[name] = to_json_value(lane);
  return text_of({{"baseline_version", kBaselineVersion}, {"lanes", lanes}});
}

Baseline parse_baseline(const std::string& text, const std::string& file) {
  const auto document = parse_document(text, file);
  const Node root(document, file, "");
  Baseline baseline = root.has("schema_version") ? from_report(text, file) : parse_floors(root);
  check_demands(baseline, file);
  return baseline;
}

}  // namespace reprise::reports
