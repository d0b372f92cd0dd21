#pragma once
// Historical wrong answers by name. A mutant is a set of seams: it puts wrong functions in place of
// right ones, and a scenario that names it must see the difference.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/save_queue.hpp"
#include "core/engine/seamed.hpp"
#include "sim/job/policy.hpp"

namespace reprise::sim {

/// Every seam that a run is made of.
struct Policies {
  SaveSeams save;
  LoadSeams load;
  JobPolicy job;
  /// Returns the name of the cache that serves a kind of checkpoint. Default: the kind's own.
  std::string (*cache_of)(std::string_view kind) = [](std::string_view kind) {
    return std::string(kind);
  };
  /// Returns the step that the tracker is given, for a job that is at `now` when the save ends.
  /// Default: that at which it was begun.
  Step (*tracker_step)(Step begun, Step now) = nullptr;
  /// Calls that the job makes right before each save, and after a save that failed. Default: none.
  void (*before_save)(Communicator&, const StateDict&) = nullptr;
  void (*save_failed)(PlanCache&, Communicator&, const StateDict&) = nullptr;
  /// What the job does for its saves in flight after each iteration.
  void (*iterated)(SaveQueue&) = [](SaveQueue& saves) { saves.poll(); };
  /// What the job does for its saves in flight before it exits.
  std::vector<ProtocolStep> (*shutdown)(SaveQueue&) = shutdown_protocol;
};

/// Begins a save as a job with these decisions does, which is at `iteration` when that is asked.
Save begin_save(const Policies& policies, const Ports& ports, std::shared_ptr<Communicator> group,
                const StateDict& state, SaveSettings options,
                const std::function<Step()>& iteration = {});

struct Mutant {
  std::string_view name;        ///< "no-optimizer-in-dcp/step"
  std::string_view defect;      ///< what went wrong in the field, one sentence
  std::string_view seam;        ///< "JobPolicy::requested"
  std::string_view needs;       ///< smallest layout at which it is visible
  std::vector<Code> caught_as;  ///< one of these must come up
  void (*apply)(Policies&);
};

/// All of them, sorted by name.
std::span<const Mutant> mutants();
/// USAGE with a suggestion if there is none of that name.
const Mutant& mutant_named(std::string_view name);

}  // namespace reprise::sim
