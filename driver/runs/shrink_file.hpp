#pragma once
// Makes a failing scenario of the user's own small. The random search shrinks scenarios whose
// expectation follows from rules; a file may expect anything.

#include <cstddef>
#include <optional>
#include <string>

#include "driver/lanes/lane.hpp"
#include "driver/language/scenario.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

/// Returns the text with each number replaced by "#". Two reasons that differ only in ranks, steps
/// or offsets become equal.
std::string without_numbers(const std::string& text);

/// Replaces the expectation of a simpler variant, which simpler() derived from rules, by one in the
/// sense of `original`. If the original expects what the rules say, the variant does, too, and
/// keeps the rest of the original's expectation. If the original expects something else, the
/// variant expects the same as the original. Returns nothing if the rules say that the change of
/// the scenario changes its outcome, so that the original's expectation has no meaning for it.
std::optional<Scenario> expecting_like(const Scenario& original, Scenario variant);

struct ShrunkFile {
  reports::ScenarioResult first;  ///< result of the scenario as it was given
  /// The smallest scenario that fails alike, with a `recorded` block; empty if the scenario did not
  /// fail.
  std::optional<Scenario> small = {};
  bool simpler = false;   ///< true if `small` is simpler than the scenario as it was given
  std::size_t tries = 0;  ///< number of variants that were run
};

/// Runs the scenario on the simulated lane. If it fails, replaces it by simpler variants that have
/// the same verdict and code, until there is none or `tries_max` variants have run. A failure with
/// VERDICT_DISAGREEMENT, which is about an expectation, must also keep its reason but for the
/// numbers. Throws USAGE for a scenario that runs programs instead of the simulated job.
ShrunkFile shrink_file(const Scenario& scenario, const LaneOptions& lane, std::size_t tries_max);

/// Writes a shrunk scenario to a file of that name, and makes the folder. Returns the file's path.
std::string write_scenario(const Scenario& scenario, const std::string& folder,
                           const std::string& name);

}  // namespace reprise::driver
