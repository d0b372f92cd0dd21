#pragma once
// Adds the rerun machine's state to a job's checkpoints, and restores it from them.

#include <string>
#include <vector>

#include "sim/job/data/job_data.hpp"
#include "sim/job/load_request.hpp"
#include "sim/job/modules/megatron_common.hpp"

namespace reprise::sim {

/// True if the checkpoints of this job contain the machine's state.
bool emits_rerun(const JobData& job);
/// Returns the keys that a reader may skip if it does not know them.
std::vector<std::string> optional_keys(const JobData& job);
/// Adds the machine's entry and object if this job stores them in its checkpoints.
void add_rerun(const JobData& job, StateDict& state, const JobPolicy& policy);
/// Requests the machine's object, or lets the load skip that object.
void request_rerun(const JobData& job, LoadRequest& request, const Value* common);
/// Restores the machine if the policy allows it, and sets the data iterator's batches.
void take_rerun(JobData& job, const StateDict& loaded, const CommonState& stored);

}  // namespace reprise::sim
