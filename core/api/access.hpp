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
  /// Returns the tensors and objects of a state. Throws USAGE if the state was moved from.
  static StateDict& leaves(const State& state) {
    if (state.leaves_) return *state.leaves_;
    throw Error(Code::kUsage, "state: it was moved from; assign to it before you use it again");
  }
  /// Returns the tensors and objects together with the common state. The caller still owns the
  /// tensors' memory.
  static StateDict with_common(const State& state) {
    StateDict all = leaves(state);
    all.common = state.common;
    return all;
  }
};
// clang-format on

/// This type is hidden explicitly. The public headers mention it, so it would be exported
/// otherwise.
struct [[gnu::visibility("hidden")]] JobAccess {
  /// Returns the internals of a job. Throws USAGE if the job was moved from.
  static const std::shared_ptr<JobState>& state(const Job& job) {
    if (job.state_) return job.state_;
    throw Error(Code::kUsage, "job: it was moved from; assign to it before you use it again");
  }
  static SaveInFlight in_flight(std::unique_ptr<Flight> flight);
  /// Returns the internals of a save. Throws USAGE if the save was moved from.
  static Flight& flight(SaveInFlight & save);
};

}  // namespace reprise
