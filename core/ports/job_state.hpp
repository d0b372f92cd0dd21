#pragma once
// What a job owns, and what it remembers between its calls.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reprise/job.hpp"

namespace reprise {

struct JobState {
  JobPorts own;
  std::shared_ptr<Communicator> all;  ///< ranks of the fabric
  /// Iterations that loads passed over as damaged and that were not saved anew since, by the
  /// directory that they are in.
  std::map<std::string, std::vector<Step>> damaged = {};

  Ports ports() const { return {*own.store, *own.fabric, *own.device, *own.tasks, *own.trace}; }
};

}  // namespace reprise
