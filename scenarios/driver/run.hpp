#pragma once
// Runs scenarios on a lane and puts the report together.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reports/report.hpp"
#include "scenarios/driver/catalogue.hpp"
#include "scenarios/driver/lane.hpp"

namespace reprise::driver {

/// One scenario, incarnation by incarnation. A lane that can't run it here gives not_run and says
/// why.
reports::ScenarioResult run_scenario(const Scenario& scenario, LaneKind lane,
                                     const LaneOptions& options);

/// Its incarnations on a lane that can run it, one after the other, as far as it may go on.
std::vector<IncarnationRecord> run_lives(const Scenario& scenario, Lane& lane,
                                         const LaneOptions& options);

/// After each incarnation: judges what it left in the store, adds it to the past, and does the
/// damage that its plan ends with.
void end_life(const Scenario& scenario, std::size_t number, Store& store, IncarnationRecord& life,
              Past& past);

/// What is known of a run besides its result.
struct ScenarioRun {
  reports::ScenarioResult result;
  bool broke_down = false;  ///< some rank ended by our own mistake or too late
  bool unasked = false;     ///< a mutant was on, and nothing was asked of it
};
ScenarioRun run_watched(const Scenario& scenario, LaneKind lane, const LaneOptions& options);

struct RunRequest {
  Selection selection;
  LaneKind lane = LaneKind::kSim;
  LaneOptions options;
  std::size_t jobs = 1;  ///< scenarios at a time; on lanes with real ranks, worlds of them
  /// True once no further scenario is to be begun: the rest is not run.
  std::function<bool()> interrupted = [] { return false; };
};

/// Called as each scenario begins, from any thread, one at a time.
using Started = std::function<void(std::size_t done, std::size_t total, const std::string& name)>;

/// All of them, in the files' order.
reports::Report run_all(const RunRequest& request, const Started& started);
/// The same of scenarios that were read already.
reports::Report run_these(const std::vector<Scenario>& scenarios, const RunRequest& request,
                          const Started& started);

/// What every report says of the program and the machine.
reports::Report empty_report(const std::string& lane);
/// The report of a run of this program in that directory, for something to be added; a new one
/// where there is none. USAGE if the one there is of another lane, commit or build, ReadError if it
/// can't be read.
reports::Report report_to_add_to(const std::string& directory, const std::string& lane);
/// Throws IO, naming the directory, if no file can be written there; it is made if need be.
void require_writable(const std::string& directory);
/// `directory`/report.json and junit.xml, made if need be, with what the report lacks under
/// `not_claimed`.
void write_report(const reports::Report& report, const std::string& directory);

}  // namespace reprise::driver
