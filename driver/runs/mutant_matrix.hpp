#pragma once
// Runs every mutant in every scenario, whether it is declared there or not.

#include <cstddef>
#include <set>
#include <string>

#include "driver/runs/mutant_runs.hpp"
#include "reports/matrix.hpp"
#include "sim/mutants/seam_watch.hpp"

namespace reprise::driver {

/// Returns how a scenario ended with a mutant. Pure.
reports::Cell cell_of(const ScenarioRun& with);
/// Returns the codes of a failure that the same scenario without the mutant does not find. The code
/// of the verdict is always among them. PEER_FAILED counts only if it is the only one, because it
/// says no more than that another rank failed.
std::set<std::string> new_codes(const ScenarioRun& without, const ScenarioRun& with);

/// A scenario without a mutant.
struct RightRun {
  ScenarioRun run;
  /// Decisions that the run asks. All of them if noting the decisions changed the run.
  sim::SeamSet asked;
};
RightRun run_right(const Scenario& scenario, const LaneOptions& options);
/// True if the mutant may change this run. If not, a run with the mutant takes the same course.
bool may_change(const sim::Mutant& mutant, const RightRun& right);

struct MatrixRun {
  reports::Matrix matrix;
  /// Number of scenarios that an interruption kept from being tried with every mutant. The matrix
  /// has no part of them.
  std::size_t untried = 0;
};

/// Runs the matrix on the simulated lane. Scenarios that do not pass without a mutant, or that this
/// lane can't run, are left out with their reasons.
MatrixRun run_matrix(const MutantRequest& request, const Started& started);

}  // namespace reprise::driver
