#pragma once
// Judges runs that somebody made without the driver, from their witness files and checkpoints.

#include <string>

#include "reports/report.hpp"

namespace reprise::driver {

/// Folders of witness files.
struct ResumeProof {
  std::string uninterrupted;  ///< run A: one life
  std::string resumed;        ///< run B: several lives, each but the first from a checkpoint
  /// The last life of run B, but without a load; empty if there is no such run.
  std::string cold;
  /// Directory of the checkpoints of run B; if empty, stored content is not judged.
  std::string checkpoints;
};

/// Throws USAGE if a folder holds no witness files, or run B has one life alone. A witness file
/// that can't be read is a finding.
reports::ScenarioResult prove_resume(const ResumeProof& runs);

}  // namespace reprise::driver
