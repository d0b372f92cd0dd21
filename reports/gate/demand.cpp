#include "reports/gate/demand.hpp"

#include <algorithm>
#include <sstream>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "reports/binder.hpp"

namespace reprise::reports {
namespace {

constexpr std::int64_t kBaselineVersion = 2;

/// Binds the totals of a lane, which follow from its scenarios.
void bind_totals(Slot& slot, LaneFloor& lane) {
  const std::string truth = "the entries make {}; write the baseline again with --write-baseline";
  const LaneTotals totals = totals_of(lane);
  slot.derived_field("scenarios", totals.scenarios, truth);
  slot.derived_field("skipped", totals.skipped, truth);
  slot.derived_field("elements", totals.elements, truth);
}

Floors parse_floors(const JsonField& root) {
  const JsonField version = root.at("baseline_version");
  if (version.integer() != kBaselineVersion) {
    version.refuse("is " + std::to_string(version.integer()) + "; this program reads " +
                   std::to_string(kBaselineVersion) +
                   "; write the baseline with it: reprise gate --write-baseline");
  }
  return read<Floors>(root.at("lanes"));
}

Floors from_report(const std::string& text, const std::string& file) {
  const Report report = parse_report(text, file);
  const auto refusals = check_evidence(report);
  if (!refusals.empty()) {
    const Refusal& first = refusals.front();
    throw ReadError(file + ": is not a report of an accepted run: " + first.subject +
                    (first.subject.empty() ? "" : ": ") + first.reason);
  }
  return baseline_of({&report, 1});
}

/// Throws unless the baseline demands something on each lane. A baseline without demands would
/// accept any report.
void check_demands(const Floors& baseline, const std::string& file) {
  if (baseline.empty()) throw ReadError(file + ": lanes: it has none, so it demands nothing");
  for (const auto& [lane, floor] : baseline) {
    const bool demands = totals_of(floor).scenarios != 0 || !floor.properties.empty() ||
                         !floor.mutants.empty() || !floor.matrix.empty() ||
                         !floor.exhaustive.empty() || floor.timelines > 0;
    if (!demands) throw ReadError(file + ": lanes[" + name_of(lane) + "]: demands nothing");
  }
}

}  // namespace

void bind(Slot& slot, ScenarioFloor& floor) {
  slot.rare_field("skipped", floor.skipped);
  if (slot.has("skipped")) {
    if (floor.skipped.empty()) slot.from().at("skipped").refuse("gives no reason");
    return;
  }
  slot.field("compared", floor.compared.leaves);
  slot.field("elements", floor.compared.elements);
  slot.rare_field("lives", floor.lives);
  slot.rare_field("faults", floor.faults);
  slot.rare_field("course", floor.course);
  slot.rare_field("digest", floor.digest);
  slot.rare_field("event_hash", floor.event_hash);
  slot.rare_field("account", floor.account);
}

void bind(Slot& slot, LaneFloor& lane) {
  slot.field("scenarios", lane.scenarios);
  slot.field("properties", lane.properties);
  slot.field("mutants", lane.mutants);
  slot.rare_field("matrix", lane.matrix, [&lane](Slot& matrix, std::set<std::string>& caught) {
    matrix.field("mutants", caught);
    matrix.field("scenarios", lane.matrix_scenarios);
  });
  slot.rare_field("exhaustive", lane.exhaustive);
  slot.rare_field("coverage", lane.timelines, [&lane](Slot& coverage, std::uint64_t& runs) {
    coverage.field("runs", runs);
    coverage.field("marks", lane.marks);
  });
  slot.field("runs_doubled", lane.runs_doubled);
  slot.newer_field("seed", lane.seed);
  slot.newer_field("commit", lane.project.commit);
  slot.newer_field("build", lane.project.build);
  slot.field("totals", lane, bind_totals);
}

std::string course_of(const ScenarioResult& result) {
  std::string course;
  bool plain = true;
  for (const auto& life : result.lives) {
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
  for (const auto& life : result.lives) {
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
  LaneTotals totals = lane.unnamed;
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
    floor.lives = result.lives.size();
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
  if (lane.project.dirty) lane.project.commit.clear();
  return lane;
}

Floors baseline_of(std::span<const Report> reports) {
  Floors baseline;
  for (const auto& report : reports) baseline[report.lane] = floor_of(report);
  return baseline;
}

std::string to_json(const Floors& baseline) {
  return text_of({{"baseline_version", kBaselineVersion}, {"lanes", written(baseline)}});
}

Floors parse_baseline(const std::string& text, const std::string& file) {
  const auto document = parse_document(text, file);
  const JsonField root(document, file, "");
  Floors baseline = root.has("schema_version") ? from_report(text, file) : parse_floors(root);
  check_demands(baseline, file);
  return baseline;
}

}  // namespace reprise::reports
