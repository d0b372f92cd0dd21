#pragma once
// Lists historical defects by name. A seam is a place where the code calls a replaceable function.
// A mutant replaces the correct function with a wrong one at some seams. A scenario that declares
// the mutant must detect it.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/api/calls.hpp"
#include "core/load/load_seamed.hpp"
#include "core/save/save_seamed.hpp"
#include "core/seams/diff_seams.hpp"
#include "core/seams/reshard_seams.hpp"
#include "properties/finding_code.hpp"
#include "reprise/save.hpp"
#include "sim/job/data/policy.hpp"

namespace reprise::sim {

/// All replaceable functions (seams) of a run.
struct Policies {
  SaveSeams save;
  LoadSeams load;
  ReshardSeams reshard;
  DiffSeams diff;
  JobPolicy job;
  /// Returns the name under which the plan of a kind of checkpoint is kept. By default, each kind
  /// has its own.
  std::string (*cache_of)(std::string_view kind) = [](std::string_view kind) {
    return std::string(kind);
  };
  /// Returns the step to write into the tracker. `begun` is the step at which the save began, and
  /// `now` is the step that the job has reached when the save ends. If the function is null, a save
  /// writes `begun`.
  Step (*tracker_step)(Step begun, Step now) = nullptr;
  /// Hook that is called right before each save, and after a failed save. By default, it does
  /// nothing.
  void (*before_save)(Communicator&, const StateDict&) = nullptr;
  void (*save_failed)(PlanSlot&, Communicator&, const StateDict&) = nullptr;
  /// After each iteration, handles the job's saves that are in flight.
  void (*iterated)(SaveQueue&) = [](SaveQueue& saves) { saves.poll(); };
  /// Before the job changes or moves its state, waits for what saves in flight still copy from it.
  void (*before_update)(SaveQueue&) = [](SaveQueue& saves) { saves.wait_for_staging(); };
  /// Before the job exits (with any exit code), ends the saves that are still in flight.
  void (*shutdown)(SaveQueue&) = [](SaveQueue& saves) { saves.finalize(); };
};

/// Returns the decisions of a save. `iteration` returns the job's current step when it is called.
SaveSeams save_seams(const Policies& policies, const std::function<Step()>& iteration);
/// Saves by the public calls, with these policies, and commits. Calls that share `memory` are of
/// one job.
SaveResult save(const Policies& policies, const Ports& ports, std::shared_ptr<Communicator> group,
                const StateDict& state, const SaveOptions& options,
                std::shared_ptr<JobMemory> memory = std::make_shared<JobMemory>(),
                const std::function<Step()>& iteration = {});

struct Mutant {
  std::string_view name;               ///< name, such as "no-optimizer-in-dcp/step"
  std::string_view defect;             ///< the historical defect in one sentence
  std::string_view seam;               ///< name of the seam, such as "JobPolicy::requested"
  std::string_view needs;              ///< smallest layout in which the defect shows
  std::vector<FindingCode> caught_as;  ///< the verdict must have one of these codes
  void (*apply)(Policies&);
};

/// Returns all mutants, sorted by name.
std::span<const Mutant> mutants();
/// Returns the mutant of that name. Throws USAGE with a suggestion if there is none.
const Mutant& mutant_named(std::string_view name);

}  // namespace reprise::sim
