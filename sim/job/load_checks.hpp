#pragma once
// Checks the common state of a checkpoint and refuses checkpoints that a job must not load.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/job/data/job_config.hpp"
#include "sim/job/data/policy.hpp"
#include "sim/job/modules/megatron_common.hpp"
#include "sim/job/modules/module.hpp"

namespace reprise::sim {

/// Throws FOREIGN_CHECKPOINT if the checkpoint belongs to another model, or to another run that the
/// job's settings do not accept. Returns a note if they accept the other run.
std::optional<std::string> require_own(const CommonState& stored, std::span<const ModuleConfig> own,
                                       const JobConfig& config);
/// Returns a note if another version of the engine wrote the checkpoint; it is accepted
/// nevertheless.
std::optional<std::string> engine_note(const CommonState& stored, const JobConfig& config);
/// Refuses a module that only the checkpoint or only the job has. If the load's options list the
/// module, adds a note about it instead.
void require_modules(std::span<const ModuleConfig> stored, std::span<const ModuleConfig> own,
                     const LoadChoice& choice, std::vector<std::string>& notes);
/// If all modules of a checkpoint have the same sharding, the common state records this sharding in
/// two places. Refuses a checkpoint whose two records differ.
void require_one_sharding(const Value& common, const CommonState& stored);
/// A load uses the sharding in the common state to read a module's state. Refuses the module if its
/// own object records a different or unknown sharding. `entry` is the module's entry as stored.
void require_same_sharding(const Module& module, const Value& entry, const CommonState& stored);
/// Refuses modules that a job cannot read. Every rank checks all modules, even those of which it
/// holds no part, so that all ranks refuse the same modules.
void require_readable(std::span<const ModuleConfig> stored, std::span<const ModuleConfig> own,
                      const ModulePolicy& policy);

}  // namespace reprise::sim
