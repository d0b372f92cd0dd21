#pragma once
// The schedule of learning rate and weight decay is a count of samples: a load that counts
// otherwise makes the rate jump on its curve.

#include "properties/ruling.hpp"
#include "reprise/value.hpp"

namespace reprise::driver {

/// `own` and `uninterrupted` are two jobs' common states at one step. SCHEDULE_DRIFT with both
/// counts and rates if they differ in the samples that their schedules have counted.
Rulings judge_schedule(GlobalRank rank, const Value& own, const Value& uninterrupted);

}  // namespace reprise::driver
