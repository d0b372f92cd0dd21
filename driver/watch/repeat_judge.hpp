#pragma once
// Decides what two runs of the same steps show: only what repeats itself can be blamed on a resume.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "driver/watch/watch_judgement.hpp"

namespace reprise::driver {

struct Repetition {
  /// Names that differ from run to run on some rank, and so are not judged.
  std::set<std::string> noise;
  /// Leaves of saves that differ from run to run.
  std::set<std::string> leaf_noise;
  /// Steps that both runs made on all ranks.
  std::int64_t steps = 0;
  /// Set if weights, data or losses differ: then nothing can be judged.
  std::optional<WatchFinding> broken;
};

/// Compares the uninterrupted life with the same steps of another one, rank by rank.
Repetition compare_runs(const LifeRecording& first, const LifeRecording& second);

}  // namespace reprise::driver
