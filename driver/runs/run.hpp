#pragma once
// Runs scenarios on a lane and assembles the report.

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "driver/lanes/lane.hpp"
#include "driver/language/catalogue.hpp"
#include "driver/record/judged_store.hpp"
#include "reports/report.hpp"

namespace reprise::reports {
struct PastReport;
}  // namespace reprise::reports

namespace reprise::driver {

class TraceFile;

/// Runs one scenario, life by life. If the lane can't run it here, the verdict is
/// not_run, with the reason.
reports::ScenarioResult run_scenario(const Scenario& scenario, LaneKind lane,
                                     const LaneOptions& options);

/// Runs the lives in order. Stops if a life ends in a way that the scenario does not
/// allow. The lane must be able to run the scenario.
std::vector<LifeRecord> run_lives(const Scenario& scenario, Lane& lane, const LaneOptions& options);

/// Must be called after each life. Judges the store that the life left, adds the
/// life to `past`, and does to the store what the life's plan ends with, such as
/// damage.
void end_life(const Scenario& scenario, std::size_t number, const JudgedStore& where,
              const sim::Policies& policies, LifeRecord& life, Past& past);

/// The result of a scenario, and facts about its run that are not part of the result.
struct ScenarioRun {
  reports::ScenarioResult result;
  /// True if some rank ended because of a bug in our own code, or with the code DEADLINE.
  bool broke_down = false;
  bool unasked = false;  ///< true if a mutant was active but its functions were never called
  /// All codes that were found, even those that the verdict does not name; empty unless the run
  /// had a mutant or noted the decisions that it asked.
  std::set<std::string> codes = {};
};
ScenarioRun run_watched(const Scenario& scenario, LaneKind lane, const LaneOptions& options);

struct RunRequest {
  Selection selection;
  LaneKind lane = LaneKind::kSim;
  LaneOptions options;
  std::size_t jobs = 1;  ///< how many scenarios run at a time
  /// Called before each scenario. If it returns true, no more scenarios start, and the remaining
  /// ones are reported as not run.
  std::function<bool()> interrupted = [] { return false; };
  /// Gets what the ranks of each scenario on the simulated lane did; null if there is no trace.
  TraceFile* trace = nullptr;
  /// If true, the failures of scenarios on the simulated lane get a timeline.
  bool timelines = false;
  /// If true, no further scenario begins once one did not pass; the others are reported as not run.
  bool exit_first = false;
  /// A scenario that did not pass gets up to so many more tries (reports/retries.hpp).
  std::size_t retries = 0;
};

/// Called when a scenario starts, by any thread.
using Started = std::function<void(std::size_t done, std::size_t total, const std::string& name)>;

/// The progress of a run.
struct RunProgress {
  std::size_t done = 0;
  std::size_t total = 0;
  std::size_t failures = 0;  ///< number of scenarios that ran and did not pass
  std::string running;       ///< name of the scenario that started last
};
/// Called when a scenario starts and when one ends, from any thread, but never by two threads at
/// once.
using Watch = std::function<void(const RunProgress& progress)>;

/// Runs all selected scenarios in file order.
reports::Report run_all(const RunRequest& request, const Watch& watch);
/// Runs scenarios that the caller has already read. Throws USAGE before any runs if the checkpoints
/// of one have no free place where they are kept. If this program crashes in one, no further one
/// begins: what ran stays in the report, and the others are listed as not run.
reports::Report run_these(const std::vector<Scenario>& scenarios, const RunRequest& request,
                          const Watch& watch);
/// Adds files that could not be read to the report, as scenarios that were not run. Its verdict is
/// then not a pass.
void add_unreadable(const std::vector<UnreadableFile>& files, reports::Report& report);

/// Returns a report without results. It contains only the facts about program and machine that
/// every report has.
reports::Report empty_report(reports::ReportLane lane);
/// Returns the report that this program left in the directory, so that results can be added to it.
/// Returns a new report if there is none. Throws USAGE if the report is from another lane, commit
/// or build, and ReadError if it can't be read.
reports::Report report_to_add_to(const std::string& directory, reports::ReportLane lane);
/// Throws IO, naming the directory, if no file can be written there. If the directory was not
/// there, it is made for the trial, and is gone afterwards.
void require_writable(const std::string& directory);
/// Creates the directory and writes report.json, junit.xml and the pages there. Lists in
/// `not_claimed` the evidence that the report lacks. Returns the SHA-256 of report.json, as
/// hexadecimal digits: a gate can demand it.
std::string write_report(const reports::Report& report, const std::string& directory);
/// Creates the directory and writes report.html and summary.md there. The SHA-256 is that of the
/// report.json with the same content. `earlier` are the reports by which problems are new or not.
void write_pages(const reports::Report& report, const std::string& report_sha256,
                 std::span<const reports::PastReport> earlier, const std::string& directory);

}  // namespace reprise::driver
