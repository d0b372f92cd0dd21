#pragma once
// Texts of `reprise run`: how far it is, what it would do, and what is wrong with its files.

#include <string>
#include <vector>

#include "driver/language/catalogue.hpp"
#include "driver/runs/run.hpp"
#include "driver/runs/run_plan.hpp"

namespace reprise::cli {

/// Returns a status of at most 72 characters, such as "12/2642, 1 not passed, 3 min left:
/// placements/ep2". The time left is estimated from the time since the start.
std::string status_text(const driver::RunProgress& progress, double seconds);

/// Returns the names of the scenarios that would run, with their tags, and then all tags.
std::string list_text(const driver::LanePlan& plan, const driver::Catalogue& catalogue);

/// Returns what would run on each lane, what would be skipped and why, and which defaults layouts
/// leave unsaid. The first plan is that of the chosen lane, whose scenarios are named.
std::string dry_run_text(const std::vector<driver::LanePlan>& plans,
                         const driver::Catalogue& catalogue);

/// Returns which defaults the layouts of the scenarios leave unsaid, as lines after a heading;
/// empty if there are none.
std::string defaults_text(const std::vector<driver::Scenario>& scenarios);

/// Returns all mistakes of all files, each with its line; empty if there are none.
std::string mistakes_text(const driver::Catalogue& catalogue);

}  // namespace reprise::cli
