#pragma once
// Judges runs that were made without the driver, from their witness files and checkpoints.

#include <string>

#include "reports/report.hpp"

namespace reprise::driver {

/// Folders with the witness files of the runs.
struct ResumeProof {
  std::string uninterrupted;  ///< run A: one life, which runs to its end
  std::string resumed;        ///< run B: several lives; each except the first begins with a load
  /// A second run of run B's last life, but without loading anything; empty if there is none.
  std::string cold;
  /// Folder with second runs of some of run B's lives. Each of these starts from the same
  /// checkpoint as the life that it repeats. A life needs a second run if its layout differs from
  /// that of the first life. It is then compared with the second run instead of run A. Files are
  /// named as in run B. Empty if there are no second runs.
  std::string control;
  /// Directory of the checkpoints of run B; if empty, stored content is not judged.
  std::string checkpoints;
  /// A second uninterrupted run of the same script; empty if there is none. If it differs from run
  /// A, the script is not deterministic, and what depends on the difference is not judged.
  std::string second = {};
};

/// Throws USAGE if a folder contains no witness files, if run A, `cold` or `second` has several
/// lives, if run B has only one life, or if `control` lacks a life whose layout differs from that
/// of the first life. An unreadable witness file of run B is a failure. If another run is
/// unreadable or did not end, the proof is inconclusive.
reports::ScenarioResult prove_resume(const ResumeProof& runs);

}  // namespace reprise::driver
