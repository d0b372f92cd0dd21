#pragma once
// The steps that the ranks of a life reported, as a table: a row for each step, a column for each
// rank.

#include <compare>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

/// One report of a step. A load within a life goes back, so that a step is trained again.
struct StepTime {
  std::int64_t step = 0;
  std::size_t again = 0;  ///< number of earlier reports of this step by the same rank

  friend auto operator<=>(const StepTime&, const StepTime&) = default;
};

/// Returns what stands at that time or, if the step was trained fewer times, what stands there
/// last; null if nobody trained the step.
template <class Value>
const Value* at_or_last(const std::map<StepTime, Value>& times, const StepTime& time) {
  const auto after = times.upper_bound(time);
  if (after == times.begin()) return nullptr;
  const auto at = std::prev(after);
  return at->first.step == time.step ? &at->second : nullptr;
}

/// What each rank reported at one time; null for a rank that reported nothing.
using StepRow = std::vector<const WitnessStep*>;

/// Refers to the ranks' witness, which must outlive it.
class StepTable {
 public:
  explicit StepTable(const std::vector<RankWitness>& ranks);

  const std::map<StepTime, StepRow>& rows() const { return rows_; }
  /// See at_or_last().
  const StepRow* row(const StepTime& time) const { return at_or_last(rows_, time); }
  /// Returns the step's metric, as the first rank reported it last; nothing if none does.
  std::optional<double> metric(std::int64_t step, const std::string& name) const;

 private:
  std::map<StepTime, StepRow> rows_;
};

/// Returns the metric from the first rank that reports it; nothing if none does.
std::optional<double> metric_in(const StepRow& row, const std::string& name);
/// True if no rank had described more than `states_most` states before the step.
bool before_state(const StepRow& row, std::size_t states_most);

/// Returns the steps that a life trained, in ascending order.
std::vector<std::int64_t> steps_of(const std::vector<RankWitness>& ranks);
/// Returns the step of the first checkpoint that the life loaded; nothing if it loaded none.
std::optional<std::int64_t> loaded_by(const LifeEvidence& life);

}  // namespace reprise::driver
