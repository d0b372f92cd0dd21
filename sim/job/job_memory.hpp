#pragma once
// Moves and lists the memory of a job's arrays.

#include <vector>

#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// They do what the functions of TrainingJob with the same names describe.
void reallocate(JobData& job);
std::vector<ByteSpan> memory(JobData& job);

}  // namespace reprise::sim
