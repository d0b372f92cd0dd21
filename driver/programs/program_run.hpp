#pragma once
// Runs a scenario of a trainer, with the runs that it is compared with, to its result.

#include "driver/language/scenario.hpp"
#include "driver/programs/control_book.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

struct ProgramOptions {
  ProgramPlace place;
  std::string keep;  ///< folder where the run's files stay, below the scenario's name; empty: none
  std::shared_ptr<ControlBook> controls = std::make_shared<ControlBook>();
};

/// Leaves `seconds` and `replay` to the caller.
reports::ScenarioResult run_program_scenario(const Scenario& scenario,
                                             const ProgramOptions& options);

/// Returns the result of lives that ran, without verdict.
reports::ScenarioResult describe_lives(const ProgramPlan& plan,
                                       const std::vector<LifeEvidence>& lives,
                                       const ControlRuns& controls);

/// Sets verdict, code and reason; a failure that the plan expects is a pass.
void conclude(const ProgramPlan& plan, const WitnessFindings& findings,
              reports::ScenarioResult& result);

}  // namespace reprise::driver
