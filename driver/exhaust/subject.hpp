#pragma once
// Defines the job whose state is saved and loaded.

#include <string>
#include <vector>

#include "core/state/state_dict.hpp"
#include "sim/job/job.hpp"

namespace reprise::driver {

struct Subject {
  std::string model = "every-kind";
  sim::Sharding sharding = sim::Sharding::kFullyReshardable;
};

/// Path of the checkpoint in its store.
inline constexpr const char* kExhaustCheckpoint = "checkpoint";
/// Number of iterations before the save. After two iterations, the optimizer's moments of an
/// element differ from each other.
inline constexpr int kExhaustSteps = 2;

/// Returns the config of the job that saves. It is a modular job with the whole model as its only
/// module, so that the settings of its optimizers are stored as objects.
sim::JobConfig saving_config(const Subject& subject, const sim::Layout& layout);
/// Returns the config of the job that loads. Only its seed differs from saving_config(), so that
/// the initial values differ.
sim::JobConfig loading_config(const Subject& subject, const sim::Layout& layout);

/// Before a load, each byte of memory that the load must fill has this value.
inline constexpr std::byte kBeforeLoad{0xA7};
/// Fills all elements of the leaves with kBeforeLoad.
void overwrite(const StateDict& state);

}  // namespace reprise::driver
