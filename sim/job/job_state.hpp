#pragma once
// Builds the state that a save of the job writes, and two states that judges use to compare jobs.

#include "core/state/state_dict.hpp"
#include "sim/job/data/job_data.hpp"
#include "sim/job/modules/megatron_common.hpp"

namespace reprise::sim {

/// These functions implement TrainingJob::state(), live_state() and model_space(), in this order.
/// saved_state() is collective over the world.
StateDict saved_state(JobData& job, const JobGroups& given, const SaveParts& parts);
StateDict live_state(JobData& job, const SaveParts& parts);
StateDict model_space(JobData& job);

}  // namespace reprise::sim
