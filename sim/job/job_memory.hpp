#pragma once
// The memory of a job's arrays.

#include <vector>

#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// Do what TrainingJob's functions of these names do.
void reallocate(JobData& job);
std::vector<ByteSpan> memory(JobData& job);

}  // namespace reprise::sim
