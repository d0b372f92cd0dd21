#pragma once
// Objects that a job owns, and facts it remembers between calls.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reprise/job.hpp"

namespace reprise {

struct JobState {
  JobPorts own;
  std::shared_ptr<Communicator> all;  ///< all ranks of the fabric
  /// Iterations, by directory, that loads skipped as damaged and that have not been saved again
  /// since.
  std::map<std::string, std::vector<Step>> damaged = {};

  Ports ports() const { return {*own.store, *own.fabric, *own.device, *own.tasks, *own.trace}; }
};

}  // namespace reprise
