#include "reports/gate/baseline.hpp"

#include <algorithm>
#include <sstream>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "reports/document.hpp"
#include "reports/renamed.hpp"

namespace reprise::reports {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kBaselineVersion = 2;

Json to_json_value(const ScenarioFloor& floor) {
  if (!floor.skipped.empty()) return {{"skipped", floor.skipped}};
  Json json = {{"compared", floor.compared.leaves}, {"elements", floor.compared.elements}};
  if (floor.lives > 0) json["lives"] = floor.lives;
  if (floor.faults > 0) json["faults"] = floor.faults;
  if (!floor.course.empty()) json["course"] = floor.course;
  if (!floor.digest.empty()) json["digest"] = floor.digest;
  if (!floor.event_hash.empty()) json["event_hash"] = floor.event_hash;
  if (!floor.account.empty()) json["account"] = floor.account;
  return json;
}

Json to_json_value(const LaneFloor& lane) {
  Json scenarios = Json::object();
  for (const auto& [name, floor] : lane.scenarios) scenarios[name] = to_json_value(floor);
  const LaneTotals totals = totals_of(lane);
  Json json = {{"scenarios", scenarios},
               {"properties", lane.properties},
               {"mutants", lane.mutants},
               {"runs_doubled", lane.runs_doubled},
               {"seed", lane.seed},
               {"commit", lane.project.dirty ? "" : lane.project.commit},
               {"build", lane.project.build},
               {"totals",
                {{"scenarios", totals.scenarios},
                 {"skipped", totals.skipped},
                 {"elements", totals.elements}}}};
  if (!lane.matrix.empty()) {
    json["matrix"] = {{"mutants", lane.matrix}, {"scenarios", lane.matrix_scenarios}};
  }
  if (!lane.exhaustive.empty()) json["exhaustive"] = lane.exhaustive;
  if (lane.timelines > 0) {
    json["coverage"] = {{"runs", lane.timelines}, {"marks", lane.marks}};
  }
  return json;
}

/// Returns a text field; empty if the baseline was written before that field existed.
std::string text_or_nothing(const JsonField& node, const std::string& key) {
  return node.has(key) ? node.at(key).text() : "";
}

/// Returns a count; 0 if the baseline was written before that field existed, or if there is none.
std::uint64_t count_or_nothing(const JsonField& node, const std::string& key) {
  return node.has(key) ? node.at(key).count() : 0;
}

ScenarioFloor scenario_at(const JsonField& node) {
  if (node.has("skipped")) {
    const JsonField why = node.at("skipped");
    if (why.text().empty()) why.refuse("gives no reason");
    return {.compared = {}, .skipped = why.text()};
  }
  return {
      .compared = {.leaves = node.at("compared").count(), .elements = node.at("elements").count()},
      .lives = count_or_nothing(node, "lives"),
      .faults = count_or_nothing(node, "faults"),
      .course = text_or_nothing(node, "course"),
      .digest = text_or_nothing(node, "digest"),
      .event_hash = text_or_nothing(node, "event_hash"),
      .account = text_or_nothing(node, "account")};
}

void check_total(const JsonField& node, std::uint64_t sum) {
  if (node.count() == sum) return;
  node.refuse("is " + std::to_string(node.count()) + ", but the entries make " +
              std::to_string(sum) + "; write the baseline again with --write-baseline");
}

LaneFloor floor_at(const JsonField& node) {
  LaneFloor lane;
  for (const auto& [name, entry] : node.at("scenarios").entries()) {
    lane.scenarios[name] = scenario_at(entry);
  }
  for (const auto& [name, cases] : node.at("properties").entries()) {
    lane.properties[name] = cases.count();
  }
  for (const auto& name : node.at("mutants").texts()) lane.mutants.insert(name);
  if (node.has("matrix")) {
    const JsonField matrix = node.at("matrix");
    for (const auto& name : matrix.at("mutants").texts()) lane.matrix.insert(name);
    lane.matrix_scenarios = matrix.at("scenarios").count();
  }
  if (node.has("exhaustive")) {
    for (const auto& [space, pairs] : node.at("exhaustive").entries()) {
      lane.exhaustive[space] = pairs.count();
    }
  }
  if (node.has("coverage")) {
    lane.timelines = node.at("coverage").at("runs").count();
    for (const auto& name : node.at("coverage").at("marks").texts()) lane.marks.insert(name);
  }
  lane.runs_doubled = node.at("runs_doubled").count();
  lane.seed = node.has("seed") ? node.at("seed").count() : 1;
  lane.project.commit = text_or_nothing(node, "commit");
  lane.project.build = text_or_nothing(node, "build");
  const LaneTotals sums = totals_of(lane);
  const JsonField totals = node.at("totals");
  check_total(totals.at("scenarios"), sums.scenarios);
  check_total(totals.at("skipped"), sums.skipped);
  check_total(totals.at("elements"), sums.elements);
  return lane;
}

Baseline parse_floors(const JsonField& root) {
  const JsonField version = root.at("baseline_version");
  if (version.integer() != kBaselineVersion) {
    version.refuse("is " + std::to_string(version.integer()) + "; this program reads 1 and " +
                   std::to_string(kBaselineVersion));
  }
  Baseline baseline;
  for (const auto& [name, floor] : root.at("lanes").entries()) {
    const auto lane = report_lane_named(name);
    if (!lane) floor.refuse(no_lane(name));
    baseline[*lane] = floor_at(floor);
  }
  return baseline;
}

Baseline from_report(const std::string& text, const std::string& file) {
  const Report report = parse_report(text, file);
  const auto refusals = weigh(report);
  if (!refusals.empty()) {
    const Refusal& first = refusals.front();
    throw ReadError(file + ": is not a report of an accepted run: " + first.subject +
                    (first.subject.empty() ? "" : ": ") + first.reason);
  }
  return baseline_of({&report, 1});
}

/// Throws unless the baseline demands something on each lane. A baseline without demands would
/// accept any report.
void check_demands(const Baseline& baseline, const std::string& file) {
  if (baseline.empty()) throw ReadError(file + ": lanes: it has none, so it demands nothing");
  for (const auto& [lane, floor] : baseline) {
    const bool demands = totals_of(floor).scenarios != 0 || !floor.properties.empty() ||
                         !floor.mutants.empty() || !floor.matrix.empty() ||
                         !floor.exhaustive.empty() || floor.timelines > 0;
    if (!demands) throw ReadError(file + ": lanes[" + name_of(lane) + "]: demands nothing");
  }
}

}  // namespace

std::string course_of(const ScenarioResult& result) {
  std::string course;
  bool plain = true;
  for (const auto& life : result.incarnations) {
    plain = plain && (life.outcome == LifeOutcome::kRan || life.outcome == LifeOutcome::kContinued);
    course += (course.empty() ? "" : ", ") + name_of(life.outcome) +
              (life.code.empty() ? "" : " by " + life.code);
  }
  for (const auto& fault : result.faults) {
    if (fault.must_fire) continue;
    plain = false;
    course += "; " + fault.kind + (fault.fired ? " fired" : " stayed away");
  }
  return plain ? "" : course;
}

std::string account_of(const ScenarioResult& result) {
  std::ostringstream text;
  text << result.world << ';' << join(result.layouts, ";") << ';' << result.diagnosis << ';'
       << result.left_to_time;
  for (const auto& life : result.incarnations) {
    text << "\nlife " << life.layout << ' ' << name_of(life.outcome) << ' ' << life.code << ' '
         << life.exit_code << ' ' << life.first_step << ' ' << life.last_step;
  }
  for (const auto& rank : result.ranks) {
    text << "\nrank " << rank.rank << ' ' << rank.owns << ' ' << rank.loaded_step;
  }
  for (const auto& generation : result.generations) {
    text << "\ncheckpoint " << generation.step << ' ' << generation.life << ' ' << generation.state
         << ' ' << join(generation.loaded_by, ",") << ' ' << join(generation.skipped_by, ",");
  }
  for (const auto& fault : result.faults) {
    text << "\nfault " << fault.kind << ' ' << fault.rank << ' ' << fault.armed << fault.reached
         << fault.fired << fault.must_fire;
  }
  for (const auto& point : result.trajectory) {
    text << "\nstep " << point.step << ' ' << point.uninterrupted_loss.has_value();
  }
  Hasher hasher;
  hasher.text(text.str());
  return hex(hasher.digest());
}

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
    ScenarioFloor& floor = lane.scenarios[result.name];
    floor.compared = compared_of(result);
    floor.lives = result.incarnations.size();
    floor.faults = static_cast<std::uint64_t>(
        std::ranges::count(result.faults, true, &FaultResult::must_fire));
    if (result.event_hash.empty()) continue;
    floor.course = course_of(result);
    floor.digest = result.content_digest;
    floor.event_hash = result.event_hash;
    floor.account = account_of(result);
  }
  for (const auto& skipped : report.skipped) {
    lane.scenarios[skipped.scenario] = {.compared = {}, .skipped = skipped.reason};
  }
  for (const auto& property : report.properties) lane.properties[property.name] = property.cases;
  for (const auto& mutant : report.mutants) lane.mutants.insert(mutant.name);
  if (report.matrix) {
    for (const auto& row : report.matrix->rows) {
      if (row.is_caught()) lane.matrix.insert(row.mutant);
    }
    lane.matrix_scenarios = report.matrix->scenarios.size();
  }
  for (const auto& tried : report.exhaustive) lane.exhaustive[tried.space()] = tried.passed();
  if (const auto& searched = report.coverage) {
    lane.timelines = searched->runs;
    for (const auto& mark : searched->marks) {
      if (mark.count > 0) lane.marks.insert(mark.name);
    }
  }
  lane.runs_doubled = runs_doubled(report);
  lane.seed = report.seed;
  lane.project = report.project;
  return lane;
}

Baseline baseline_of(std::span<const Report> reports) {
  Baseline baseline;
  for (const auto& report : reports) baseline[report.lane] = floor_of(report);
  return baseline;
}

std::string to_json(const Baseline& baseline) {
  Json lanes = Json::object();
  for (const auto& [lane, floor] : baseline) lanes[name_of(lane)] = to_json_value(floor);
  return text_of({{"baseline_version", kBaselineVersion}, {"lanes", lanes}});
}

Baseline parse_baseline(const std::string& text, const std::string& file) {
  auto document = parse_document(text, file);
  bring_up_to_date(document);
  const JsonField root(document, file, "");
  Baseline baseline = root.has("schema_version") ? from_report(text, file) : parse_floors(root);
  check_demands(baseline, file);
  return baseline;
}

}  // namespace reprise::reports
