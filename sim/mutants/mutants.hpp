#pragma once
// Historical wrong answers by name. A mutant is a set of seams: it puts wrong functions in place of
// right ones, and a scenario that names it must see the difference.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/load.hpp"
#include "core/engine/save_queue.hpp"
#include "sim/job/policy.hpp"

namespace reprise::sim {

/// Every seam that a run is made of.
struct Policies {
  SavePolicy save;
  LoadPolicy load;
  JobPolicy job;
  /// What the job does for its saves in flight after each iteration.
  void (*iterated)(SaveQueue&) = [](SaveQueue& saves) { saves.poll(); };
  /// What the job does for its saves in flight before it exits.
  std::vector<ProtocolStep> (*shutdown)(SaveQueue&) = shutdown_protocol;
};

struct Mutant {
  std::string_view name;    ///< "no-optimizer-in-dcp/step"
  std::string_view defect;  ///< what went wrong in the field, one sentence
  std::string_view seam;    ///< "JobPolicy::requested"
  std::string_view needs;   ///< smallest layout at which it is visible
  /// The codes and verdicts of which one must come up, by their printed names.
  std::vector<std::string_view> caught_as;
  void (*apply)(Policies&);
};

/// All of them, sorted by name.
std::span<const Mutant> mutants();
/// USAGE with a suggestion if there is none of that name.
const Mutant& mutant_named(std::string_view name);

}  // namespace reprise::sim
