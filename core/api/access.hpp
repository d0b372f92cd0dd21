#pragma once
// The insides of the public classes, for this folder alone.

#include <memory>

#include "core/ports/job_state.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/save.hpp"
#include "reprise/state.hpp"

namespace reprise {

// clang-format off
struct [[gnu::visibility("hidden")]] StateAccess {
  static StateDict& leaves(State& state) { return *state.leaves_; }
  /// Returns the leaves with the common state; the tensors' memory stays the caller's.
  static StateDict with_common(const State& state) {
    StateDict all = *state.leaves_;
    all.common = state.common;
    return all;
  }
};
// clang-format on

/// The public headers name it, so it would be exported.
struct [[gnu::visibility("hidden")]] JobAccess {
  static const std::shared_ptr<JobState>& state(const Job& job) { return job.state_; }
  static SaveInFlight in_flight(std::unique_ptr<Flight> flight);
};

}  // namespace reprise
