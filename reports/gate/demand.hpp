#pragma once
// Says what reports must show, lane by lane. A baseline holds the results of an accepted run; a
// policy was written by people. Reads and writes baselines.

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reports/evidence.hpp"
#include "reports/report.hpp"

namespace reprise::reports {

struct ScenarioFloor {
  Compared compared;         ///< zeros if the scenario was skipped
  std::string skipped = {};  ///< why the scenario was skipped; empty if it ran
  std::uint64_t lives = 0;   ///< number of its lives; 0 in baselines of versions that wrote none
  std::uint64_t faults = 0;  ///< number of the planned faults that had to fire

  // The next four members are set only if the lane is deterministic. Equal seeds give equal
  // values.
  std::string course = {};      ///< see course_of
  std::string digest = {};      ///< digest of the content at the end
  std::string event_hash = {};  ///< equal only for runs of the same program
  std::string account = {};     ///< see account_of
};

/// Describes the results that the scenario file does not determine: how each life (life)
/// ended, and which of the optional faults fired. Empty if every life simply ran to its end and the
/// scenario has no optional faults.
std::string course_of(const ScenarioResult& result);

/// Returns a hash of what else a report says of the lives: world, layouts, exit codes, steps, what
/// ranks loaded, checkpoints, planned faults and the diagnosis.
std::string account_of(const ScenarioResult& result);

struct LaneTotals {
  std::uint64_t scenarios = 0;  ///< number of scenarios that ran
  std::uint64_t skipped = 0;
  std::uint64_t elements = 0;
};

struct LaneFloor {
  std::map<std::string, ScenarioFloor> scenarios;
  /// Numbers that are demanded beside the scenarios named above. A policy names none.
  LaneTotals unnamed = {};
  std::map<std::string, std::uint64_t> properties;  ///< number of cases by property
  std::uint64_t cases = 0;  ///< least number of cases of all properties; a policy alone has one
  std::set<std::string> mutants;
  /// Mutants that some scenario of the matrix caught, and the number of its scenarios; empty and 0
  /// if no matrix was made.
  std::set<std::string> matrix = {};
  std::uint64_t matrix_scenarios = 0;
  /// Number of pairs of layouts that passed, for each Exhaustive::space(). Empty if none were
  /// tried.
  std::map<std::string, std::uint64_t> exhaustive = {};
  std::uint64_t timelines = 0;       ///< random timelines that were searched
  std::set<std::string> marks = {};  ///< marks that they reached
  std::uint64_t runs_doubled = 0;
  std::uint64_t seed = 1;
  /// Commit and build of the run. If there is no commit, as of a changed tree, every report is
  /// treated as made by a different program.
  Project project = {};
};

LaneTotals totals_of(const LaneFloor& lane);

using Floors = std::map<ReportLane, LaneFloor>;

using Date = std::chrono::year_month_day;

/// A failure that a policy accepts until a date.
struct KnownFailure {
  enum class Kind : std::uint8_t { kScenario, kProperty, kMutant };

  ReportLane lane = ReportLane::kSim;
  Kind kind = Kind::kScenario;
  std::string name;
  std::string code;  ///< the code that it fails with; for a mutant MUTANT_SURVIVED
  std::string reason;
  std::string owner;
  Date expires;       ///< the last day on which it is accepted
  std::string place;  ///< file and line of the entry
};

/// Says what reports must show, and what may fail meanwhile. A run makes a baseline; people write a
/// policy.
struct Demand {
  bool generated = false;  ///< true for a baseline, which knows every lane and each skip
  Floors lanes = {};
  std::vector<KnownFailure> known_failures = {};
};

LaneFloor floor_of(const Report& report);
/// If two reports have the same lane, the later report is used.
Floors baseline_of(std::span<const Report> reports);

/// Returns canonical JSON, as in report.json. The text is small enough to be committed to a
/// repository.
std::string to_json(const Floors& baseline);
/// Reads the output of to_json, or the report.json of an accepted run. Throws ReadError if the text
/// is neither, if its totals disagree with its entries, if the report does not pass, or if the
/// baseline demands nothing.
Floors parse_baseline(const std::string& text, const std::string& file);

}  // namespace reprise::reports
