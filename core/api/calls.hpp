#pragma once
// The public calls with the engine's own types in place of State: what the public functions call,
// and what the harness calls, so that both are the same saves and loads.

#include <cstdint>
#include <memory>
#include <span>

#include "core/load/load.hpp"
#include "core/ports/job_state.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/save.hpp"
#include "reprise/state.hpp"

namespace reprise {

/// Returns the ports as a job takes them, but somebody else owns them: they must outlive the job
/// and its saves.
JobPorts borrowed_ports(const Ports& ports);

/// Returns a job of the ranks of `group` over borrowed ports. Jobs that share `memory` keep one set
/// of plans and of damaged iterations. Not collective.
Job job_over(const Ports& ports, std::shared_ptr<Communicator> group,
             std::shared_ptr<JobMemory> memory = std::make_shared<JobMemory>(),
             JobSeams seams = {});

/// Returns a job of the same ranks with the same memory, whose tensors are on another device. Saves
/// that `job` has begun keep the device before. Not collective.
Job with_device(const Job& job, std::shared_ptr<Device> device);

/// The same as begin_save() of the public header.
SaveInFlight begin_save(Job& job, const StateDict& state, const SaveOptions& options);

/// The same as load() of the public header, except that the job decides what it wants when it sees
/// the checkpoint.
LoadResult load(Job& job, const LoadOptions& options, const Ask& ask);

/// Sets `digests` to those of what a rank holds of its tensors, in the order in which they were
/// added (core/digest). Tensors that are not in host memory are on `device`. Not collective. Throws
/// USAGE unless there are as many digests as tensors, and UNSUPPORTED with its key for a tensor
/// that the device can't reach.
void digest(const State& state, Device& device, std::span<std::uint64_t> digests);

}  // namespace reprise
