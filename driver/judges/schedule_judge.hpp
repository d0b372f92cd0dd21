#pragma once
// Judges the schedule of learning rate and weight decay. The schedule counts samples: after a load
// with a wrong count, the rate jumps to another point of its curve.

#include "properties/finding.hpp"
#include "reprise/value.hpp"

namespace reprise::driver {

/// Compares the common states of two jobs at one step. Reports SCHEDULE_DRIFT if their schedules
/// have counted different numbers of samples. The report has both numbers and both rates.
judged::Findings judge_schedule(GlobalRank rank, const Value& own, const Value& uninterrupted);

}  // namespace reprise::driver
