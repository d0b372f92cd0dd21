#pragma once
// Gives this folder access to the internals of the public classes.

#include <memory>

#include "core/ports/job_state.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/error.hpp"
#include "reprise/save.hpp"
#include "reprise/state.hpp"

namespace reprise {

// clang-format off
struct [[gnu::visibility("hidden")]] StateAccess {
  /// Throws USAGE for a moved-from state.
  static StateDict& leaves(const State& state) {
    if (state.leaves_) return *state.leaves_;
    throw Error(Code::kUsage, "state: it was moved from; assign to it before you use it again");
  }
  /// Returns the leaves with the common state; the tensors' memory stays the caller's.
  static StateDict with_common(const State& state) {
    StateDict all = leaves(state);
    all.common = state.common;
    return all;
  }
};
// clang-format on

/// Hidden explicitly, because the public headers name it and it would be exported.
struct [[gnu::visibility("hidden")]] JobAccess {
  /// Throws USAGE for a moved-from job.
  static const std::shared_ptr<JobState>& state(const Job& job) {
    if (job.state_) return job.state_;
    throw Error(Code::kUsage, "job: it was moved from; assign to it before you use it again");
  }
  static SaveInFlight in_flight(std::unique_ptr<Flight> flight);
  /// Throws USAGE for a moved-from save.
  static Flight& flight(SaveInFlight & save);
};

}  // namespace reprise
