#pragma once
// Compares the samples that the lives of a job took with those of an uninterrupted run. Pure.

#include <string>
#include <vector>

#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

/// Reports the first step of a life in which the job took other samples than the uninterrupted run,
/// or a sample more or less often. A job may pass over its data many times. Ranks that the layout
/// places along another axis than data parallelism may report the same samples.
///
/// Under another number of data-parallel ranks, a step may take another number of samples, and a
/// sampler may pad its last batch otherwise. What then can't be judged is an inconclusive finding.
/// Returns what was not compared, for people.
std::vector<std::string> judge_samples(const std::vector<LifeEvidence>& lives,
                                       const LifeEvidence& uninterrupted, Findings& findings);

}  // namespace reprise::driver
