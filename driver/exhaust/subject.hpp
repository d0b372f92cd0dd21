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
/// Number of iterations before the save. After two of them, no two moments of an element are equal.
inline constexpr int kExhaustSteps = 2;

/// Returns the config of the job under a layout. The model is a module of its own, so that the
/// settings of its optimizers are objects.
sim::JobConfig saving_config(const Subject& subject, const sim::Layout& layout);
/// Does the same for a job that is about to load. It starts from other values.
sim::JobConfig loading_config(const Subject& subject, const sim::Layout& layout);

/// Each byte of memory that a load must fill has this value before.
inline constexpr std::byte kBeforeLoad{0xA7};
/// Fills all elements of the leaves with kBeforeLoad.
void overwrite(const StateDict& state);

}  // namespace reprise::driver
