#pragma once
// How the directories of iterations are named. Megatron has iter_%07d and a tracker beside them;
// other trainers have names of their own, such as step-%d, and no tracker: the newest checkpoint is
// then the one with the highest number.

#include <optional>
#include <string>
#include <string_view>

#include "reprise/types.hpp"

namespace reprise {

class StepNames {
 public:
  /// Megatron's names.
  StepNames() : StepNames("iter_%07d") {}
  /// `pattern` is text with one %d, or with one %0<width>d for a number with leading zeros. Throws
  /// USAGE for anything else, and for a pattern with a '/'.
  explicit StepNames(const std::string& pattern);

  std::string directory_of(Step step) const;
  /// Returns the step of the directory `name`; nothing if directory_of() never returns that name.
  std::optional<Step> step_of(std::string_view name) const;
  /// True if a tracker beside the directories names the newest of them.
  bool have_tracker() const { return *this == StepNames(); }

  friend bool operator==(const StepNames&, const StepNames&) = default;

 private:
  std::string before_;
  std::string after_;
  std::size_t digits_ = 1;  ///< at least so many
};

/// Returns the step in the name of a directory that Megatron, torchtitan, transformers, Accelerate,
/// DeepSpeed or verl gives it, such as "checkpoint-100"; nothing for other names.
std::optional<Step> step_in_any_name(std::string_view name);

}  // namespace reprise
