#include "core/trend/trend.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/print.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/geometry/dtype.hpp"
#include "core/geometry/element_values.hpp"
#include "core/megatron/parameter_role.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

using Kind = ParameterRole::Kind;
using Tensors = std::map<std::string, TensorFacts>;

using Parameters = std::map<std::string, OptimizerKeys>;

bool is_wide(DType dtype) { return size_of(dtype) >= 4; }

/// Integers are no weights: they are counts, or masks.
Parameters float_parameters(const Tensors& tensors,
                            std::vector<std::string>* unassigned = nullptr) {
  std::vector<std::string> keys;
  for (const auto& [key, facts] : tensors) {
    if (facts.role.kind == Kind::kOther) continue;
    if (facts.role.kind != Kind::kWeight || is_float_like(facts.dtype)) keys.push_back(key);
  }
  return parameters_of(keys, unassigned);
}

bool have_moments(const Parameters& parameters) {
  return std::ranges::any_of(parameters,
                             [](const auto& named) { return !named.second.moments.empty(); });
}

/// Compares a generation with the one before.
class Pair {
 public:
  Pair(const GenerationFacts& before, const GenerationFacts& after, TrendRow& row,
       std::vector<TrendFinding>& findings)
      : before_(before), after_(after), row_(row), findings_(findings) {}

  void judge() {
    count();
    std::vector<std::string> unassigned;
    const Parameters all = float_parameters(after_.tensors, &unassigned);
    const bool any_moments = have_moments(all);
    Parameters moving;  // those that should move
    for (const auto& [key, parameter] : all) {
      if (!before_.tensors.contains(key)) continue;
      if (!any_moments || !parameter.moments.empty()) moving.emplace(key, parameter);
    }
    row_.weights = moving.size();
    for (const auto& [key, parameter] : moving) row_.weights_changed += changed(key) ? 1U : 0U;
    judge_iterations();
    judge_unassigned(std::move(unassigned), any_moments);
    const bool none_changed = row_.weights != 0 && row_.weights_changed == 0;
    if (none_changed && !tell_unchanged(moving)) return;
    for (const auto& [key, parameter] : moving) {
      if (!none_changed || !any_changed(parameter.moments)) judge(key, parameter);
    }
    judge_steps(moving);
    tell_all();
  }

 private:
  bool changed(const std::string& key) const {
    const auto then = before_.tensors.find(key);
    return then == before_.tensors.end() || !then->second.same(after_.tensors.at(key));
  }
  bool any_changed(const std::vector<std::string>& keys) const {
    return std::ranges::any_of(keys, [this](const std::string& key) { return changed(key); });
  }

  void count() {
    std::uint64_t only = 0;
    for (const auto& [key, facts] : after_.tensors) {
      const auto then = before_.tensors.find(key);
      if (then == before_.tensors.end()) {
        ++only;
        continue;
      }
      ++row_.compared;
      if (then->second.same(facts)) {
        row_.bytes_shared += facts.bytes;
        row_.unchanged.push_back(key);
      } else {
        ++row_.changed;
      }
    }
    const std::uint64_t gone = before_.tensors.size() - row_.compared;
    if (only + gone == 0) return;
    tell(Severity::kNote, "OTHER_KEYS",
         counted(only, "tensor") + " new, " + counted(gone, "tensor") + " of " + before_.name +
             " gone");
  }

  void tell(Severity severity, std::string code, std::string message,
            std::vector<std::string> keys = {}) {
    findings_.push_back(
        {severity, std::move(code), after_.name, std::move(message), std::move(keys)});
  }

  /// Moments of which nobody knows the weight can't be held against it, but together they must
  /// move.
  void judge_unassigned(std::vector<std::string> unassigned, bool any_assigned) {
    std::erase_if(unassigned,
                  [this](const std::string& key) { return !before_.tensors.contains(key); });
    if (unassigned.empty()) return;
    const bool zero = std::ranges::all_of(
        unassigned, [this](const std::string& key) { return after_.tensors.at(key).zero; });
    if (!any_assigned && !zero && row_.weights_changed != 0 && !any_changed(unassigned)) {
      return tell_keys(Severity::kError, "STILL_MOMENTS",
                       "moment is that of " + before_.name + ", although weights changed",
                       "moments are those of " + before_.name + ", although weights changed",
                       std::move(unassigned));
    }
    tell_keys(Severity::kNote, "UNKNOWN_MOMENTS",
              "moment fits no weight, or several, and was not held against one",
              "moments fit no weight, or several, and were not held against one",
              std::move(unassigned));
  }

  /// Tells that no weight changed. Returns true if that may be as it should, so that moments which
  /// did not move either are still to be judged.
  bool tell_unchanged(const Parameters& moving) {
    bool moments_moved = false;
    bool rounded = true;  // each weight is narrow, and its master in float32 moved
    for (const auto& [key, parameter] : moving) {
      moments_moved = moments_moved || any_changed(parameter.moments);
      rounded = rounded && !is_wide(after_.tensors.at(key).dtype) && any_changed(parameter.masters);
    }
    const std::string none = row_.weights == 1 ? "its only weight is that of " + before_.name
                                               : "none of its " + with_commas(row_.weights) +
                                                     " weights differs from " + before_.name;
    if (rounded) {
      tell(Severity::kWarning, "ROUNDED_AWAY",
           none + ", which rounding can do: the master copies in float32 moved");
      return false;
    }
    const bool all_known = !before_.learning_rates.empty() && !after_.learning_rates.empty();
    const int zeros = (has_zero_rate(before_) ? 1 : 0) + (has_zero_rate(after_) ? 1 : 0);
    const std::string moved = none + ", although the optimizer's moments moved";
    if (!moments_moved || (all_known && zeros == 0)) {
      tell(Severity::kError, "STALE_BYTES",
           moments_moved ? moved + " and its learning rate is not 0" : none);
      return false;
    }
    // One step has one rate; of several, the rate may be 0 in the first or the last alone.
    const bool one_step = after_.number - before_.number == 1;
    if (zeros == 2 || (zeros == 1 && one_step)) {
      tell(Severity::kNote, "ZERO_RATE",
           moved + ": a learning rate of 0 is saved, as at the start of a warm-up");
    } else {
      tell(Severity::kWarning, "STILL_WEIGHT",
           moved + "; a learning rate of 0 does that, but is not saved with both");
    }
    return true;
  }

  static bool has_zero_rate(const GenerationFacts& generation) {
    const auto& rates = generation.learning_rates;
    return !rates.empty() && std::ranges::all_of(rates, [](double rate) { return rate == 0; });
  }

  void judge_iterations() {
    if (!before_.iteration || !after_.iteration) return;
    if (*after_.iteration > *before_.iteration) return;
    tell(Severity::kError, "STALE_ITERATION",
         "its state names iteration " + std::to_string(*after_.iteration) + ", and " +
             before_.name + " names " + std::to_string(*before_.iteration));
  }

  void judge(const std::string& key, const OptimizerKeys& parameter) {
    if (parameter.moments.empty()) return;
    const bool moments_changed = any_changed(parameter.moments);
    const bool zero = std::ranges::all_of(parameter.moments, [this](const std::string& moment) {
      return after_.tensors.at(moment).zero;
    });
    if (changed(key)) {
      if (!moments_changed) (zero ? zero_moments_ : still_moments_).push_back(key);
    } else if (moments_changed) {
      const bool wide = is_wide(after_.tensors.at(key).dtype) && !any_changed(parameter.masters);
      (wide ? unmoved_ : rounded_away_).push_back(key);
    } else if (!zero) {
      const bool stepped = parameter.step.empty() || changed(parameter.step);
      (stepped ? still_ : not_stepped_).push_back(key);
    }
  }

  void judge_steps(const Parameters& moving) {
    std::vector<std::string> still;
    std::vector<std::string> back;
    for (const auto& [key, parameter] : moving) {
      if (parameter.step.empty() || !changed(key)) continue;
      const auto then = before_.tensors.find(parameter.step);
      if (then == before_.tensors.end()) continue;
      const auto was = then->second.number;
      const auto is = after_.tensors.at(parameter.step).number;
      if (!was || !is) continue;
      if (*is == *was) still.push_back(parameter.step);
      if (*is < *was) back.push_back(parameter.step);
    }
    const auto greatest = [](const std::vector<std::int64_t>& steps) {
      return steps.empty() ? std::nullopt : std::optional(std::ranges::max(steps));
    };
    const auto was = greatest(before_.optimizer_steps);
    const auto is = greatest(after_.optimizer_steps);
    if (was && is && *is == *was) still.emplace_back("param_groups");
    if (was && is && *is < *was) back.emplace_back("param_groups");
    tell_keys(Severity::kWarning, "STILL_STEPS",
              "step counter did not go on, although weights changed",
              "step counters did not go on, although weights changed", still);
    tell_keys(Severity::kWarning, "STEPS_BACK", "step counter went back", "step counters went back",
              back);
  }

  void tell_keys(Severity severity, std::string code, const std::string& one,
                 const std::string& many, std::vector<std::string> keys) {
    if (keys.empty()) return;
    std::string message = with_commas(keys.size()) + " " + (keys.size() == 1 ? one : many);
    tell(severity, std::move(code), std::move(message), std::move(keys));
  }

  void tell_all() {
    tell_keys(
        Severity::kError, "STALE_BYTES",
        "weight and its moments are those of " + before_.name + ", although others changed",
        "weights and their moments are those of " + before_.name + ", although others changed",
        std::move(still_));
    tell_keys(Severity::kError, "STILL_MOMENTS",
              "weight changed, although its moments are those of " + before_.name,
              "weights changed, although their moments are those of " + before_.name,
              std::move(still_moments_));
    tell_keys(Severity::kWarning, "STILL_WEIGHT",
              "weight is that of " + before_.name + ", although its moments changed",
              "weights are those of " + before_.name + ", although their moments changed",
              std::move(unmoved_));
    tell_keys(Severity::kWarning, "ZERO_MOMENTS", "weight changed, although its moments are zero",
              "weights changed, although their moments are zero", std::move(zero_moments_));
    tell_keys(Severity::kNote, "ROUNDED_AWAY",
              "weight is that of " + before_.name + ", as rounding to its type can leave it",
              "weights are those of " + before_.name + ", as rounding to their type can leave them",
              std::move(rounded_away_));
    tell_keys(Severity::kNote, "NOT_STEPPED",
              "weight was not stepped by the optimizer since " + before_.name,
              "weights were not stepped by the optimizer since " + before_.name,
              std::move(not_stepped_));
  }

  const GenerationFacts& before_;
  const GenerationFacts& after_;
  TrendRow& row_;
  std::vector<TrendFinding>& findings_;
  std::vector<std::string> still_;
  std::vector<std::string> still_moments_;
  std::vector<std::string> unmoved_;
  std::vector<std::string> zero_moments_;
  std::vector<std::string> rounded_away_;
  std::vector<std::string> not_stepped_;
};

TrendRow row_of(const GenerationFacts& facts) {
  TrendRow row{.name = facts.name,
               .number = facts.number,
               .iteration = facts.iteration,
               .tensors = facts.tensors.size()};
  for (const auto& [key, tensor] : facts.tensors) row.bytes += tensor.bytes;
  row.unread = facts.unread;
  return row;
}

}  // namespace

std::uint64_t TrendReport::compared() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(rows, [](const TrendRow& row) { return row.compared != 0; }));
}

std::uint64_t TrendReport::judged() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(rows, [](const TrendRow& row) { return row.weights != 0; }));
}

bool TrendReport::all_judged() const {
  const auto read = static_cast<std::uint64_t>(
      std::ranges::count_if(rows, [](const TrendRow& row) { return row.unread.empty(); }));
  return judged() != 0 && read == rows.size() && read == judged() + 1;
}

bool TrendReport::anything_unread() const {
  return std::ranges::any_of(rows, [](const TrendRow& row) { return !row.unread.empty(); });
}

bool TrendReport::healthy() const {
  return std::ranges::none_of(
      findings, [](const TrendFinding& one) { return one.severity == Severity::kError; });
}

void TrendJudge::add(GenerationFacts generation) {
  report_.rows.push_back(row_of(generation));
  for (const Finding& finding : generation.damage) {
    report_.findings.push_back({Severity::kError,
                                std::string(name_of(finding.code)),
                                generation.name,
                                finding.message,
                                {finding.key}});
  }
  if (!generation.unread.empty()) return;
  if (last_) {
    Pair(*last_, generation, report_.rows.back(), report_.findings).judge();
    note_frozen(generation);
  }
  last_ = std::move(generation);
}

void TrendJudge::note_frozen(const GenerationFacts& generation) {
  const Parameters all = float_parameters(generation.tensors);
  const bool any_moments = have_moments(all);
  const bool first = report_.compared() <= 1;
  std::vector<std::string> frozen;
  for (const auto& [key, parameter] : all) {
    if (!parameter.moments.empty() || !any_moments) continue;
    const auto then = last_->tensors.find(key);
    const bool same = then != last_->tensors.end() && then->second.same(generation.tensors.at(key));
    if (same && (first || std::ranges::binary_search(report_.frozen, key))) frozen.push_back(key);
  }
  report_.frozen = std::move(frozen);
}

GenerationFacts facts_of(Store& store, const RunGeneration& generation,
                         const std::function<bool(const std::string&)>& wanted,
                         const SurveyPorts& ports) {
  GenerationFacts facts{
      .name = generation.name, .number = generation.number, .unread = generation.unread};
  if (generation.parts.empty() && facts.unread.empty())
    facts.unread = "there is no checkpoint in it";
  try {
    for (const std::string& part : generation.parts) {
      const std::string path = part.empty() ? generation.path : join_path(generation.path, part);
      Checkpoint checkpoint = Checkpoint::open_any(store, path);
      add_facts(checkpoint, part.empty() ? "" : part + "/", wanted, ports, facts);
    }
  } catch (const Error& error) {
    facts.unread = error.what();
  }
  return facts;
}

TrendReport trend(Store& store, const std::vector<RunGeneration>& generations,
                  const std::function<bool(const std::string&)>& wanted, const SurveyPorts& ports) {
  TrendJudge judge;
  for (const RunGeneration& generation : generations) {
    judge.add(facts_of(store, generation, wanted, ports));
  }
  return judge.report();
}

}  // namespace reprise
