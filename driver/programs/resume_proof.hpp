#pragma once
// Judges runs that somebody made without the driver, from their witness files and checkpoints.

#include <string>

#include "reports/report.hpp"

namespace reprise::driver {

/// Folders with the witness files of the runs.
struct ResumeProof {
  std::string uninterrupted;  ///< run A: one life
  std::string resumed;        ///< run B: several lives; each except the first begins with a load
  /// A run of run B's last life that loads nothing; empty if there is no such run.
  std::string cold;
  /// Directory of the checkpoints of run B; if empty, stored content is not judged.
  std::string checkpoints;
};

/// Throws USAGE if a folder holds no witness files, or if run B has only one life. A witness file
/// that can't be read becomes a finding.
reports::ScenarioResult prove_resume(const ResumeProof& runs);

}  // namespace reprise::driver
