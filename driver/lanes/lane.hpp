#pragma once
// Runs the lives of a scenario in order. Only the store survives from one life to the
// next.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/checkpoint/parsed_metadata.hpp"
#include "driver/language/scenario.hpp"
#include "driver/record/phase_log.hpp"
#include "driver/record/record.hpp"
#include "driver/record/reference_run.hpp"
#include "reprise/store.hpp"
#include "sim/fibers/event_log.hpp"
#include "sim/fibers/fiber_chooser.hpp"
#include "sim/mutants/seam_watch.hpp"
#include "sim/world/recording.hpp"

namespace reprise::driver {

class ControlBook;

struct LaneOptions {
  std::uint64_t seed = 1;  ///< seed of the simulated scheduler
  std::string mutant;      ///< name of the mutant; empty if there is none
  std::string keep;        ///< directory in which checkpoints are kept; if "", they are deleted
  std::string launcher = "mpirun";
  std::string executable;          ///< path of this program, for lanes that start processes
  std::uint64_t deadline_s = 120;  ///< limit on the real time of one life
  std::int32_t ranks_per_gpu = 1;  ///< limit on the ranks that share a device on the gpu lane
  std::string python;              ///< Python interpreter of trainers; if empty, python3
  LogOptions log;
  /// Returns the schedule of each life on the simulated lane; if null, all choices are uniform.
  std::function<sim::SchedulePlan(std::size_t life)> schedule = {};
  /// Replaces decisions of the engine and the job on the simulated lane, before the mutant does; if
  /// null, replaces none.
  std::function<void(sim::Policies& policies)> decide = {};
  /// The control runs with which scenarios of trainers are compared. Several scenarios can share
  /// control runs. If null, each scenario makes its own.
  std::shared_ptr<ControlBook> controls = {};
  /// The uninterrupted jobs with which judges compare. All copies of these options share one
  /// ReferenceRuns, so each reference run is computed only once.
  std::shared_ptr<ReferenceRuns> references = std::make_shared<ReferenceRuns>();
  /// The metadata that judges of any scenario have read; shared in the same way.
  std::shared_ptr<ParsedMetadata> parsed = std::make_shared<ParsedMetadata>();
  /// If set, a run on the simulated lane without a mutant adds the decisions that it asks.
  std::shared_ptr<sim::SeamSet> asked_seams = {};
  /// Receives what the ranks of each life did, when the life has ended; if null, nothing is
  /// recorded. The lane `program` records nothing.
  std::function<void(std::size_t life, sim::Recording recording)> recorded = {};
  /// Gets the events of each life on the simulated lane, those that its event hash is made of,
  /// while it runs; may be null.
  std::function<void(std::size_t life, const sim::LoggedEvent& call)> calls = {};
};

/// Returns the decisions of a run with these options: those of the mutant if there is one.
sim::Policies policies_of(const LaneOptions& options);

/// Runs the lives of one scenario.
class Lane {
 public:
  virtual ~Lane() = default;
  /// Runs one life. `past` holds the effects of the earlier lives.
  virtual LifeRecord run(std::size_t life, const Past& past) = 0;
  /// Returns the store of the checkpoints, for judges that read it between lives.
  virtual Store& store() = 0;
  /// Returns the directory of that store; empty if it is not on disk.
  virtual std::string directory() const { return {}; }
  /// Called once after the last life. Moves the checkpoints to the directory where they are
  /// kept.
  virtual void finish() = 0;
};

/// Runs ranks as fibers on one thread, over a store that loses unsynced writes between lives
/// (or keeps them: see CrashModel).
std::unique_ptr<Lane> make_sim_lane(const Scenario& scenario, const LaneOptions& options);
/// Runs ranks as processes of a launcher, over a real directory; `lane` is kMpi or kGpu.
std::unique_ptr<Lane> make_process_lane(LaneKind lane, const Scenario& scenario,
                                        const LaneOptions& options);

/// Removes from the record all ranks that are not members of the job, except ranks that ended
/// badly.
void keep_members(const LifePlan& plan, LifeRecord& record);

/// Returns why the lane can't run the scenario here; nothing if it can.
std::optional<std::string> why_not(LaneKind lane, const Scenario& scenario,
                                   const LaneOptions& options);

}  // namespace reprise::driver
