#pragma once
// Lists the memory of a job's arrays, and moves the arrays to new memory.

#include <vector>

#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// See the functions of TrainingJob with the same names.
void reallocate(JobData& job);
std::vector<ByteSpan> memory(JobData& job);

}  // namespace reprise::sim
