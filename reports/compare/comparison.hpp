#pragma once
// Compares two reports of one lane. Reads no files.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/report.hpp"

namespace reprise::reports {

/// Says how much slower a scenario must be to be called slower: by the ratio and by the seconds.
struct SlowerLimits {
  double ratio = 1.5;
  double seconds = 1;
};

/// The meaning of a change. Something that only differs is information.
enum class Meaning : std::uint8_t { kWorse, kBetter, kInformation };
/// Returns "worse", "better" or "information".
std::string name_of(Meaning meaning);

struct ReportChange {
  Meaning meaning = Meaning::kInformation;
  std::string what;     ///< the kind of change, such as "newly failing" or "different event hash"
  std::string subject;  ///< a scenario, "property NAME", "mutant NAME" or a part of the report
  std::string before;   ///< empty if there was none
  std::string now;      ///< empty if there is none
};

struct ReportComparison {
  /// True if both reports are from the same commit and build, neither with uncommitted changes, and
  /// have the same seed. Then digests, event hashes and counts must be equal.
  bool same_program = false;
  /// True if both are from one machine. If not, a slower scenario is information.
  bool same_machine = false;
  /// The factor by which the machine was slower. It is the median of the scenarios' ratios if
  /// nearly all scenarios are slower by a like factor, and 1 otherwise. A scenario is slower only
  /// if it is so beside this. Times alone can't tell this from a change that slows every scenario
  /// alike.
  double slowdown = 1;
  std::vector<ReportChange> changes;  ///< the worse ones first, then the better ones

  std::size_t count(Meaning meaning) const;
  bool got_worse() const { return count(Meaning::kWorse) > 0; }
};

/// Compares a report with an older one. Evidence that is gone is worse, and so is a scenario that
/// no longer passes, one that is new and does not pass, a mutant that survives, or a verdict that
/// the newer report's own entries contradict. Both reports must be of one lane.
ReportComparison compare_reports(const Report& before, const Report& now,
                                 const SlowerLimits& limits);

nlohmann::json to_json_value(const ReportChange& change);
/// Returns canonical JSON: {"better", "changes": [{"before", "meaning", "now", "subject",
/// "what"}], "information", "same_machine", "same_program", "slowdown", "worse"}. The three
/// meanings are counts.
std::string to_json(const ReportComparison& comparison);

}  // namespace reprise::reports
