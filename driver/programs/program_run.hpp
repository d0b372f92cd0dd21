#pragma once
// Runs a scenario of a trainer and the control runs that it is compared with, and returns the
// result.

#include "driver/language/scenario.hpp"
#include "driver/programs/control_book.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

struct ProgramOptions {
  ProgramPlace place;
  /// Folder in which the run's files are kept, under the scenario's name; if empty, they are
  /// deleted.
  std::string keep;
  std::shared_ptr<ControlBook> controls = std::make_shared<ControlBook>();
};

/// Runs the scenario a second time if it did not pass because a process was ended at its deadline.
/// The caller must fill in `replay` of the result, and `seconds` of all tries together.
reports::ScenarioResult run_program_scenario(const Scenario& scenario,
                                             const ProgramOptions& options);

/// Returns a result that describes the lives that ran; conclude() adds the verdict.
reports::ScenarioResult describe_lives(const ProgramPlan& plan,
                                       const std::vector<LifeEvidence>& lives,
                                       const ControlRuns& controls);

/// Sets verdict, code and reason. A failure that the plan expects counts as a pass.
void conclude(const ProgramPlan& plan, const Findings& findings, reports::ScenarioResult& result);

}  // namespace reprise::driver
