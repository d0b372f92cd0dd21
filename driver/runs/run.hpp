#pragma once
// Runs scenarios on a lane and assembles the report.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "driver/lanes/lane.hpp"
#include "driver/language/catalogue.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

/// Runs one scenario, incarnation by incarnation. If the lane can't run it here, the result is
/// not_run with the reason.
reports::ScenarioResult run_scenario(const Scenario& scenario, LaneKind lane,
                                     const LaneOptions& options);

/// Runs the incarnations one after the other, as long as they may go on, on a lane that can.
std::vector<IncarnationRecord> run_lives(const Scenario& scenario, Lane& lane,
                                         const LaneOptions& options);

/// Called after each incarnation: judges the store that it left, adds it to the past, and does the
/// damage at the end of its plan.
void end_life(const Scenario& scenario, std::size_t number, Store& store, IncarnationRecord& life,
              Past& past);

/// A result and facts about the run that it does not contain.
struct ScenarioRun {
  reports::ScenarioResult result;
  bool broke_down = false;  ///< true if some rank ended by our own mistake or too late
  bool unasked = false;     ///< true if a mutant was on and no call reached it
};
ScenarioRun run_watched(const Scenario& scenario, LaneKind lane, const LaneOptions& options);

struct RunRequest {
  Selection selection;
  LaneKind lane = LaneKind::kSim;
  LaneOptions options;
  std::size_t jobs = 1;  ///< number of scenarios at a time; on lanes with real ranks, of worlds
  /// True once no further scenario may start; the remaining ones are not run.
  std::function<bool()> interrupted = [] { return false; };
};

/// Called as each scenario starts, from any thread, one call at a time.
using Started = std::function<void(std::size_t done, std::size_t total, const std::string& name)>;

/// Runs all selected scenarios in file order.
reports::Report run_all(const RunRequest& request, const Started& started);
/// Runs scenarios that were already read.
reports::Report run_these(const std::vector<Scenario>& scenarios, const RunRequest& request,
                          const Started& started);

/// Returns a report with the facts about program and machine that every report has.
reports::Report empty_report(const std::string& lane);
/// Returns the report of this program in that directory, to add results to it, or a new one if
/// there is none. USAGE if it is of another lane, commit or build, ReadError if it can't be
/// read.
reports::Report report_to_add_to(const std::string& directory, const std::string& lane);
/// Throws IO, naming the directory, if no file can be written there. Creates the directory.
void require_writable(const std::string& directory);
/// Writes report.json and junit.xml to `directory`, which it creates, and lists in `not_claimed`
/// what the report lacks.
void write_report(const reports::Report& report, const std::string& directory);

}  // namespace reprise::driver
