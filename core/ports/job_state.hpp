#pragma once
// What a job owns, and what it remembers between its calls.

#include <memory>
#include <vector>

#include "reprise/job.hpp"

namespace reprise {

struct JobState {
  JobPorts own;
  std::shared_ptr<Communicator> all;  ///< ranks of the fabric
  /// Iterations that loads passed over as damaged and that were not saved anew since.
  std::vector<Step> damaged = {};

  Ports ports() const { return {*own.store, *own.fabric, *own.device, *own.tasks, *own.trace}; }
};

}  // namespace reprise
