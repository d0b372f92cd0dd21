#pragma once
// Defines the state of a job: the objects that it owns, and what it remembers between calls.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/kept_plan.hpp"
#include "reprise/job.hpp"

namespace reprise {

struct SaveSeams;
struct LoadSeams;
class ParsedMetadata;

/// A job's memory between calls.
struct JobMemory {
  /// For each directory, the iterations that a load skipped as damaged and that no later save has
  /// replaced.
  std::map<std::string, std::vector<Step>> damaged = {};
  std::map<std::string, PlanSlot> plans = {};  ///< by SaveOptions::structure
  /// Locks that saves in flight hold, by directory of iterations: further saves share them.
  std::map<std::string, std::weak_ptr<StoreLock>> locks = {};
  /// Ranks that share a process, such as those of a simulated job, parse metadata here, once for
  /// all. It is null if each load parses it, and must outlive the job.
  ParsedMetadata* parsed = nullptr;
};

/// Decisions that the harness replaced for a mutant; null if they are the engine's own. They
/// outlive the job and its saves.
struct JobSeams {
  const SaveSeams* save = nullptr;
  const LoadSeams* load = nullptr;
};

struct JobState {
  JobPorts own;
  std::shared_ptr<Communicator> all;  ///< communicator of the job's ranks
  std::shared_ptr<JobMemory> memory = std::make_shared<JobMemory>();
  JobSeams seams = {};

  Ports ports() const {
    return {*own.store,
            *own.fabric,
            *own.device,
            *own.tasks,
            *own.trace,
            own.data.get(),
            own.interrupted ? &own.interrupted : nullptr};
  }
};

}  // namespace reprise
