#pragma once
// How a job takes loaded state, or goes on from another job without a checkpoint.

#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// Collective over the world: does what TrainingJob's function of this name does.
void take(JobData& job, StateDict& loaded);

/// Continues `before` as `job`, which has not trained, as if `before` had saved and `job` had
/// loaded; only on a world of one rank.
void go_on_from(JobData& job, JobData& before);

}  // namespace reprise::sim
