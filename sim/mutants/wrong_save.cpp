#include "sim/mutants/wrong_save.hpp"

#include <algorithm>

namespace reprise::sim {
namespace {

/// 7 over 3 is really 0..3, 3..6, 6..7; this says 0..3, 2..5, 4..7.
Interval floor_begin(std::int64_t length, std::int64_t parts, std::int64_t index) {
  const std::int64_t begin = index * (length / parts);
  const std::int64_t chunk = (length + parts - 1) / parts;
  return {begin, std::min(begin + chunk, length)};
}

std::vector<CommitStep> tracker_first(Store& store, const CommitTarget& target,
                                      const CommitContent& content) {
  auto steps = commit_protocol(store, target, content);
  const auto named = [](std::string_view name) {
    return [name](const CommitStep& step) { return step.name == name; };
  };
  const auto swap_in = std::find_if(steps.begin(), steps.end(), named("swap_in"));
  const auto tracker = std::find_if(steps.begin(), steps.end(), named("tracker"));
  if (tracker != steps.end() && swap_in < tracker) std::rotate(swap_in, tracker, tracker + 1);
  return steps;
}

}  // namespace

void describe_by_floor(Policies& policies) { policies.save.plan.describe = floor_begin; }
void tracker_before_payload(Policies& policies) { policies.save.commit = tracker_first; }

}  // namespace reprise::sim
