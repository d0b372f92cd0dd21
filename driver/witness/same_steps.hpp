#pragma once
// Decides whether a difference between two runs can be blamed on a save or a load. Pure.

#include <string>

#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

/// If two runs of the same steps differ although neither had saved or loaded anything, the program
/// is not deterministic, or was not given the same seed. Makes such a finding NOT_DETERMINISTIC and
/// inconclusive, and each finding inconclusive that compares what depends on it. A learning rate
/// does not depend on a loss, and samples depend on neither. Moves these findings to the front.
void settle_same_steps(Findings& findings);

/// Returns what differs between two uninterrupted runs.
Findings other_course(const LifeEvidence& first, const LifeEvidence& second);

/// Makes findings inconclusive that depend on what other_course() found to differ, and puts that
/// before them.
void settle_other_course(Findings differences, Findings& findings);

}  // namespace reprise::driver
