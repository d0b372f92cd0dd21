#pragma once
// A tensor that belongs to no module: all ranks have copies of it, and training does not change it.
// Nothing that a job saves or loads besides it may depend on it.

#include "core/state/state_dict.hpp"
#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// Key of the tensor. It comes before the keys of all modules.
inline constexpr const char* kExtraKey = "another_tensor";

/// Gives the job the tensor if its config says so. The bytes depend on the job's seed.
void make_extra(JobData& job);
/// Adds the leaf of the tensor if the job has it.
void add_extra(const JobData& job, StateDict& state);

}  // namespace reprise::sim
