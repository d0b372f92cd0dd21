#pragma once
// Gives this folder access to the internals of the public classes.

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/ports/job_state.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/error.hpp"
#include "reprise/save.hpp"
#include "reprise/state.hpp"

namespace reprise {

/// What a State holds: its leaves, and where they are by key.
struct StateContent : StateDict {
  std::unordered_set<std::string> tensor_keys;
  /// By key the position of the first object, and that of bytes; and the stored keys of all.
  std::unordered_map<std::string, std::size_t> first_object;
  std::unordered_map<std::string, std::size_t> bytes;
  std::unordered_set<std::string> object_keys;
};

// clang-format off
struct [[gnu::visibility("hidden")]] StateAccess {
  /// Returns the content of a state. Throws USAGE if the state was moved from.
  static StateContent& content(const State& state) {
    if (state.content_) return *state.content_;
    throw Error(Code::kUsage, "state: it was moved from; assign to it before you use it again");
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
  static Job job(std::shared_ptr<JobState> state) { return Job(std::move(state)); }
  static SaveInFlight in_flight(std::unique_ptr<Flight> flight);
  /// Returns the internals of a save. Throws USAGE if the save was moved from.
  static Flight& flight(SaveInFlight & save);
};

}  // namespace reprise
