#pragma once
// Starts a job: creates its modules on this rank, with their values before the first iteration.

#include <cstdint>

#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// Collective over the job's ranks. Returns this rank's part of a job that has not trained yet.
/// Throws the same errors as TrainingJob's constructor.
JobData started(JobConfig config, Fabric& fabric, const JobPolicy& policy);

/// Resets the module to its state at the start of a job with the seed `seed`.
void start_anew(const JobData& job, Module& module, std::uint64_t seed);
void start_streams_anew(Module& module, std::uint64_t seed);
/// Returns the settings of an optimizer that has not trained.
OptimizerSettings fresh_settings(const JobData& job, const Module& module, const Family& family);
/// Returns the rule that splits this job's optimizer state under `sharding`.
ShareRule rule_of(const JobData& job, Sharding sharding);

}  // namespace reprise::sim
