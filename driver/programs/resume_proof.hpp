#pragma once
// Judges runs that somebody made without the driver, from their witness files and checkpoints.

#include <string>

#include "reports/report.hpp"

namespace reprise::driver {

/// Folders of witness files.
struct ResumeProof {
  std::string uninterrupted;  ///< run A: one life
  std::string resumed;        ///< run B: several lives, each but the first from a checkpoint
  std::string cold;           ///< run B's last life without a load; empty: not made
  std::string checkpoints;    ///< root of run B; empty: what is stored is not judged
};

/// Throws USAGE if a folder holds no witness files, or run B has one life alone. A witness file
/// that can't be read is a finding.
reports::ScenarioResult prove_resume(const ResumeProof& runs);

}  // namespace reprise::driver
