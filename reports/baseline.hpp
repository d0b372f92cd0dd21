#pragma once
// What an accepted run showed, lane by lane: the least that later runs have to show, too.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include "reports/evidence.hpp"
#include "reports/report.hpp"

namespace reprise::reports {

struct ScenarioFloor {
  Compared compared;         ///< nothing if it was skipped
  std::string skipped = {};  ///< why it was; empty: it was run

  // Where the lane is deterministic, and empty elsewhere: the same with the same seed.
  std::string course = {};      ///< see course_of
  std::string digest = {};      ///< of the content
  std::string event_hash = {};  ///< the same by the same program alone
};

/// What came of it that its file leaves open, in words: how each life ended, and which of the
/// faults that may stay away fired. Empty if no life did anything but continue.
std::string course_of(const ScenarioResult& result);

struct LaneFloor {
  std::map<std::string, ScenarioFloor> scenarios;
  std::map<std::string, std::uint64_t> properties;  ///< cases
  std::set<std::string> mutants;
  std::uint64_t runs_doubled = 0;
  std::uint64_t seed = 1;
  Project project = {};  ///< of the run; a commit of none is none that can be compared
};

/// The sums by which lanes are compared at a glance.
struct LaneTotals {
  std::uint64_t scenarios = 0;  ///< that were run
  std::uint64_t skipped = 0;
  std::uint64_t elements = 0;
};
LaneTotals totals_of(const LaneFloor& lane);

/// By the lanes' names. Two reports of one lane: the later one.
using Baseline = std::map<std::string, LaneFloor>;

LaneFloor floor_of(const Report& report);
Baseline baseline_of(std::span<const Report> reports);

/// Canonical, like report.json, and small enough to be committed.
std::string to_json(const Baseline& baseline);
/// Reads what to_json wrote, or the report.json of an accepted run. ReadError if it is neither, if
/// its sums disagree with its entries, if the report does not pass, or if it demands nothing.
Baseline parse_baseline(const std::string& text, const std::string& file);

}  // namespace reprise::reports
