#pragma once
// Defines the program's exit codes, on which scripts rely.

#include "reports/report.hpp"

namespace reprise::cli {

enum class ExitCode : int {
  kPass = 0,              ///< the verdict is "pass", "whole" or "same"
  kFail = 1,              ///< the verdict is "fail", "damaged" or "different"
  kUnusable = 2,          ///< wrong usage or unreadable input
  kInconclusive = 3,      ///< nothing was compared or run
  kNotDeterministic = 4,  ///< a replay differs from its record
  kInternal = 5,          ///< a defect of this program, or output that did not arrive
};

constexpr ExitCode exit_code_for(reports::Verdict verdict) {
  if (verdict == reports::Verdict::kPass) return ExitCode::kPass;
  return verdict == reports::Verdict::kFail ? ExitCode::kFail : ExitCode::kInconclusive;
}

/// Combines the exit codes of several inputs. Unusable input outweighs a failure, and a failure
/// outweighs what is inconclusive.
constexpr ExitCode worse_of(ExitCode a, ExitCode b) {
  const auto rank = [](ExitCode code) {
    return code == ExitCode::kUnusable       ? 3
           : code == ExitCode::kFail         ? 2
           : code == ExitCode::kInconclusive ? 1
                                             : 0;
  };
  return rank(a) < rank(b) ? b : a;
}

}  // namespace reprise::cli
