#include "driver/witness/step_table.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace reprise::driver {

StepTable::StepTable(const std::vector<RankWitness>& ranks) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::map<std::int64_t, std::size_t> seen;
    for (const auto& step : ranks[rank].steps) {
      StepRow& row = rows_[{step.step, seen[step.step]++}];
      row.resize(ranks.size());
      row[rank] = &step;
    }
  }
}

std::optional<double> StepTable::metric(std::int64_t step, const std::string& name) const {
  const StepRow* last = row({step, std::numeric_limits<std::size_t>::max()});
  return last == nullptr ? std::nullopt : metric_in(*last, name);
}

std::optional<double> metric_in(const StepRow& row, const std::string& name) {
  for (const WitnessStep* step : row) {
    if (step != nullptr && step->metrics.contains(name)) return step->metrics.at(name);
  }
  return std::nullopt;
}

bool before_state(const StepRow& row, std::size_t states_most) {
  return std::all_of(row.begin(), row.end(), [states_most](const WitnessStep* step) {
    return step == nullptr || step->states_before <= states_most;
  });
}

std::vector<std::int64_t> steps_of(const std::vector<RankWitness>& ranks) {
  std::set<std::int64_t> steps;
  for (const auto& rank : ranks) {
    for (const auto& step : rank.steps) steps.insert(step.step);
  }
  return {steps.begin(), steps.end()};
}

std::optional<std::int64_t> loaded_by(const LifeEvidence& life) {
  for (const auto& rank : life.ranks) {
    for (const auto& state : rank.states) {
      if (state.when == StateMoment::kLoaded) return state.step;
    }
  }
  return std::nullopt;
}

}  // namespace reprise::driver
