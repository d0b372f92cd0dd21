#pragma once
// Checks that what a rank reports is in an order in which a job can do it. Pure.

#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

/// What is known about a life before its ranks report anything.
struct LifeOrder {
  bool loads = false;       ///< true if the life begins with a load
  bool zero_based = false;  ///< true if the first step of the job is number 0, not 1
};

/// Adds an inconclusive finding for the first rank whose witness contradicts itself: it trains
/// before it loads, reports a step twice or not at all, describes the state of another step than it
/// has reached, or goes on after its end. Also adds one if ranks of a life that ended as planned
/// report other steps than rank 0. `called` is how messages refer to the run.
void judge_order(std::size_t number, const LifeEvidence& life, const std::string& called,
                 const LifeOrder& order, Findings& findings);

}  // namespace reprise::driver
