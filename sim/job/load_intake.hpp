#pragma once
// Puts loaded state into a job, or lets a job continue another job without a checkpoint.

#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// Collective over the world. Does the work of TrainingJob::take().
void take(JobData& job, StateDict& loaded);

/// Continues `before` as `job`, which has not trained yet. The result is as if `before` had saved
/// and `job` had loaded. Possible only on a world of one rank.
void go_on_from(JobData& job, JobData& before);

}  // namespace reprise::sim
