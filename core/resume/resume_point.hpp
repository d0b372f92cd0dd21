#pragma once
// Finds the checkpoint from which a training program would resume. Each program has a rule of its
// own: a tracker, the highest number, or the newest file. The rules were read in the programs'
// sources; docs/using.md names the releases.

#include <string>
#include <vector>

#include "reprise/store.hpp"

namespace reprise {

struct PassedOver {
  std::string name;  ///< of the directory or file, within the root
  std::string why;

  friend bool operator==(const PassedOver&, const PassedOver&) = default;
};

struct ResumePoint {
  std::string program = {};  ///< such as "torchtitan"
  std::string name = {};     ///< of the directory or file, within the root; empty if there is none
  std::string why = {};      ///< by which rule, or why there is none
  std::vector<PassedOver> passed = {};  ///< the other checkpoints that have this program's names
  /// True if a tracker names what is not there or can't be read, or if a save did not end.
  bool broken = false;

  friend bool operator==(const ResumePoint&, const ResumePoint&) = default;
};

/// The programs whose rules are known, in the order of resume_points().
std::vector<std::string> programs_that_resume();

/// Returns a point for each program that has a checkpoint or a tracker in the directory `root`, by
/// its names. Throws NOT_FOUND if there is no such directory.
std::vector<ResumePoint> resume_points(Store& store, const std::string& root);

}  // namespace reprise
