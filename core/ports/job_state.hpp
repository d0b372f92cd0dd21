#pragma once
// Defines the state of a job: the objects that it owns, and what it remembers between calls.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/kept_plan.hpp"
#include "reprise/job.hpp"

namespace reprise {

struct JobState {
  JobPorts own;
  std::shared_ptr<Communicator> all;  ///< communicator of all ranks of the fabric
  /// For each directory, the iterations that a load skipped as damaged and that no later save has
  /// replaced.
  std::map<std::string, std::vector<Step>> damaged = {};
  std::map<std::string, PlanSlot> plans = {};  ///< by SaveOptions::structure

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
