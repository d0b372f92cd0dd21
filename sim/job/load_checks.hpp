#pragma once
// Refuses checkpoints that a job must not load, from what their common state says.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/job/data/job_config.hpp"
#include "sim/job/data/policy.hpp"
#include "sim/job/modules/megatron_common.hpp"
#include "sim/job/modules/module.hpp"

namespace reprise::sim {

/// Refuses another run's or model's checkpoint as FOREIGN_CHECKPOINT, or returns a note if the job
/// names that run.
std::optional<std::string> require_own(const CommonState& stored, std::span<const ModuleConfig> own,
                                       const JobConfig& config);
/// Accepts another version's checkpoint like one's own, with a note.
std::optional<std::string> told_of_engine(const CommonState& stored, const JobConfig& config);
/// Refuses modules that one side lacks, or adds a note on each if the job names them.
void require_modules(std::span<const ModuleConfig> stored, std::span<const ModuleConfig> own,
                     const LoadChoice& choice, std::vector<std::string>& notes);
/// Two records of the sharding must agree; if modules differ there is only one record.
void require_one_sharding(const Value& common, const CommonState& stored);
/// The sharding in the module's object must be the one in the common state, by which it was read.
void require_same_sharding(const Module& module, const std::string& told,
                           const CommonState& stored);
/// Checks all modules: ranks without a part of one refuse it, too.
void require_readable(std::span<const ModuleConfig> stored, std::span<const ModuleConfig> own,
                      const ModulePolicy& policy);

}  // namespace reprise::sim
