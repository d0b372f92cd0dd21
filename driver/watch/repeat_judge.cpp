#include "driver/watch/repeat_judge.hpp"

#include <algorithm>
#include <tuple>

#include "driver/watch/name_groups.hpp"

namespace reprise::driver {
namespace {

/// In the order in which they show: weights are those after the step.
enum class Differs : std::uint8_t { kData, kLosses, kWeights };

/// A difference, ordered by when it shows.
struct Difference {
  std::int64_t step = 0;
  Differs what = Differs::kData;
  std::int32_t rank = 0;
  std::string name;

  friend auto operator<=>(const Difference& a, const Difference& b) {
    return std::tie(a.step, a.what, a.rank) <=> std::tie(b.step, b.what, b.rank);
  }
};

/// Returns the names with different values. If `common` is true, names that one side lacks are left
/// out.
std::set<std::string> differing(const WatchedValues& a, const WatchedValues& b, bool common) {
  std::set<std::string> names;
  for (const auto& [name, value] : a) {
    const auto at = b.find(name);
    if (at == b.end() ? !common : at->second != value) names.insert(name);
  }
  for (const auto& [name, value] : b) {
    if (!common && !a.contains(name)) names.insert(name);
  }
  return names;
}

bool is_weight(const std::string& name) {
  const std::string kind = kind_of(name);
  return kind == "param" || kind == "optim";
}

/// Says what to do about runs that differ.
std::string remedy_of(const Difference& first) {
  switch (first.what) {
    case Differs::kWeights:
      if (first.step > 0) break;
      return "seed torch, numpy and random before the model is made";
    case Differs::kData:
      return "give the sampler or the DataLoader a seeded generator";
    case Differs::kLosses:
      break;
  }
  return "seed what the steps draw, and set torch.use_deterministic_algorithms(True)";
}

WatchFinding finding_of(const Difference& first) {
  const std::string step = "step " + std::to_string(first.step);
  const std::string where = first.what == Differs::kWeights ? first.name + " after " + step
                            : first.what == Differs::kData  ? "the data of " + step
                                                            : "the loss of " + step;
  return {.severity = Severity::kInconclusive,
          .code = judged::kNotDeterministic,
          .where = where,
          .text = "two runs of the same steps differ, first in " + where + "; " + remedy_of(first),
          .ranks = {first.rank},
          .life = 1,
          .step = first.step};
}

class Comparison {
 public:
  void compare(std::int32_t rank, const RankRecording& a, const RankRecording& b) {
    const std::int64_t both = std::min(a.last_step(), b.last_step());
    for (const auto& state : b.held) {
      const HeldState* const other = state.at_end ? a.held_at_end() : a.held_at(state.step);
      if (other == nullptr || other->step != state.step || state.step > both) continue;
      const bool common = other->light || state.light;
      for (const auto& name : differing(other->names, state.names, common)) {
        result_.noise.insert(name);
        if (is_weight(name)) note({state.step, Differs::kWeights, rank, name});
      }
    }
    for (const auto& [step, own] : b.steps) {
      const auto at = a.steps.find(step);
      if (at == a.steps.end()) continue;
      if (at->second.inputs != own.inputs) note({step, Differs::kData, rank, ""});
      if (at->second.losses != own.losses) note({step, Differs::kLosses, rank, ""});
    }
    compare_saves(a, b);
    result_.steps = compared_ ? std::min(result_.steps, both) : both;
    compared_ = true;
  }

  Repetition result() && {
    if (first_) result_.broken = finding_of(*first_);
    return std::move(result_);
  }

 private:
  void note(Difference difference) {
    if (!first_ || difference < *first_) first_ = std::move(difference);
  }

  void compare_saves(const RankRecording& a, const RankRecording& b) {
    for (const auto& save : b.saves) {
      for (const auto& other : a.saves) {
        if (other.step != save.step || other.path != save.path) continue;
        result_.leaf_noise.merge(differing(other.leaves, save.leaves, false));
      }
    }
  }

  Repetition result_;
  bool compared_ = false;
  std::optional<Difference> first_;
};

}  // namespace

Repetition compare_runs(const LifeRecording& first, const LifeRecording& second) {
  Comparison comparison;
  for (const auto& [rank, own] : second.ranks) {
    const auto at = first.ranks.find(rank);
    if (at != first.ranks.end()) {
      comparison.compare(static_cast<std::int32_t>(rank), at->second, own);
    }
  }
  return std::move(comparison).result();
}

}  // namespace reprise::driver
