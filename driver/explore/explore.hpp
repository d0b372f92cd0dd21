#pragma once
// Searches for failures in random timelines. A timeline that reached something that few others
// reached is a place to branch from:
//
//   seed 17   ---o-------o---X              X: a mark that no timeline had reached before
//                            |--------      branches go on from there with other faults and
//                            |----X---      schedules, and what they reach is a place to branch
//                            '-----         from in turn
//
// Most branches go on with the lives of other timelines, in which those reached something rare.
//
// Two events that must come one after the other, each in one timeline of a thousand, need a million
// timelines by seeds alone. With branches they need some thousands.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/explore/timeline.hpp"
#include "reports/coverage.hpp"

namespace reprise::driver {

struct ExploreRequest {
  std::uint64_t seed = 1;
  std::uint64_t runs_max = 1000;
  double seconds_max = 0;  ///< 0 if only the number of runs ends the search
  std::size_t jobs = 1;
  bool alone = false;       ///< true for seeds alone, without branches
  bool first_only = false;  ///< true to end the search with the first batch that has a failure
  std::string mutant = {};
  std::string subject = {};  ///< what every job must be about (see is_about); empty for any job
  std::function<bool()> interrupted = [] { return false; };
  /// Called after each batch.
  std::function<void(std::uint64_t runs, double seconds)> progress = [](std::uint64_t, double) {};
  /// Called with each timeline, in the order of their numbers.
  std::function<void(const Recipe&, const TimelineResult&)> taken = [](const Recipe&,
                                                                       const TimelineResult&) {};
  /// Runs one timeline; tests may pass another world.
  std::function<TimelineResult(const Recipe&, const std::string& mutant)> run = run_timeline;
  std::vector<std::string> marks = {};  ///< those to report; if empty, all_marks()
};

struct ExploreResult {
  reports::Coverage coverage;
  std::uint64_t tuples = 0;       ///< distinct tuples seen
  std::uint64_t asked = 0;        ///< timelines that called the mutant's functions
  LifeSize largest = {};          ///< of a life under a schedule by priority
  std::uint64_t by_priority = 0;  ///< timelines with such a life
  bool interrupted = false;
  double seconds = 0;
};

/// Runs timelines until one of the limits is reached. Apart from the time limit, the result depends
/// only on the request's seed, its run() and not on `jobs`.
ExploreResult explore(const ExploreRequest& request);

/// Returns the bound of a search by priority: the least probability with which one such run meets
/// a defect of depth d, with these numbers of fibers and decisions.
double priority_bound(const LifeSize& largest);

}  // namespace reprise::driver
