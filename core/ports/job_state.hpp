#pragma once
// Defines the state of a job: the objects that it owns, and what it remembers between calls.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reprise/job.hpp"

namespace reprise {

class PlanCaches;

struct JobState {
  JobPorts own;
  std::shared_ptr<Communicator> all;  ///< communicator of all ranks of the fabric
  /// For each directory, the iterations that a load skipped as damaged and that no later save has
  /// replaced.
  std::map<std::string, std::vector<Step>> damaged = {};
  std::shared_ptr<PlanCaches> plans = {};  ///< by SaveOptions::structure; null before the first

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
