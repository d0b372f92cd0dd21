#pragma once
// Compares the steps of a resumed life with those of the life that nothing interrupted: data,
// losses, learning rates, what is saved, and how many steps there are.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "driver/watch/state_judge.hpp"

namespace reprise::driver {

struct CourseLimits {
  std::int64_t from = 0;  ///< step of life A from which the life continues
  /// Newest step of life A that a second run repeated: what differs later may differ from run to
  /// run.
  std::int64_t repeated_to = 0;
  /// True if the life is to run to the end of life A.
  bool to_the_end = true;
  const std::set<std::string>& leaf_noise;
};

struct CourseFindings {
  std::vector<WatchFinding> data;    ///< the first step of each rank that takes other data
  std::vector<WatchFinding> rates;   ///< the first other learning rate
  std::vector<WatchFinding> losses;  ///< the first other loss
  std::vector<WatchFinding> lengths;
  std::vector<WatchFinding> saves;
  /// The losses of the first step are equal, and later ones differ by about as much as a sum does
  /// whose terms are added in another order.
  bool rounding = false;
};

/// Adds what was compared to `judgement`, and asks there for a second uninterrupted life if what
/// differs begins after the steps that two runs made.
CourseFindings compare_courses(const ResumedLife& lives, const CourseLimits& course,
                               WatchJudgement& judgement);

}  // namespace reprise::driver
