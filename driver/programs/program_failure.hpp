#pragma once
// States what the judges of a trainer found as the fields of a failure.

#include "driver/witness/program_judge.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

/// Returns the failure whose cause is `findings[cause]`. All other findings are its consequences.
/// If `result` has a first difference, the failure has its element and values.
reports::Failure program_failure(const ProgramPlan& plan, const Findings& findings,
                                 std::size_t cause, const reports::ScenarioResult& result);

}  // namespace reprise::driver
