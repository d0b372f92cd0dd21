#include "driver/judges/generations.hpp"

#include <algorithm>

#include "driver/record/past.hpp"

namespace reprise::driver {
namespace {

bool contains(const std::vector<std::int64_t>& steps, Step step) {
  return std::find(steps.begin(), steps.end(), step.value) != steps.end();
}

/// Returns the steps that the life loaded, in order.
std::vector<std::int64_t> loaded_steps(const LifeRecord& life) {
  std::vector<std::int64_t> steps;
  for (const auto& rank : life.ranks) {
    for (std::size_t i = steps.size(); i < rank.loads.size(); ++i) {
      steps.push_back(rank.loads[i].step);
    }
  }
  return steps;
}

/// Follows the checkpoints from life to life.
class Generations {
 public:
  explicit Generations(std::span<const LifeRecord> lives) : lives_(lives) {
    for (const auto& life : lives) {
      if (life.stored_after) stored_ = &*life.stored_after;
    }
  }

  std::vector<reports::Generation> all() {
    if (stored_ == nullptr) return {};
    for (std::size_t number = 0; number < lives_.size(); ++number) add(number);
    for (std::size_t i = 0; i < found_.size(); ++i) found_[i].state = state_of(i);
    return std::move(found_);
  }

 private:
  void add(std::size_t number) {
    const auto loads = loaded_steps(lives_[number]);
    const std::size_t earlier = past_.saves.size();
    add_life(lives_[number], past_);
    for (std::size_t i = earlier; i < past_.saves.size(); ++i) {
      past_.saves[i].life = number;
      found_.push_back({.step = past_.saves[i].step.value, .life = number});
    }
    for (std::size_t i = 0; i < loads.size(); ++i) {
      // A life begins with a load. It saves before any further load, and the first life also before
      // the first one.
      const bool begins = i == 0 && number > 0;
      const std::size_t end = begins ? earlier : past_.saves.size();
      const auto source = source_among(end, Step{loads[i]});
      if (!source) continue;
      note(number, found_[*source].loaded_by);
      for (std::size_t later = 0; begins && later < end; ++later) {
        const bool newer = Step{loads[i]} < past_.saves[later].step;
        if (newer && was_there(later) && !has_heir(later, end)) {
          note(number, found_[later].skipped_by);
        }
      }
    }
  }

  static void note(std::size_t life, std::vector<std::size_t>& lives) {
    if (lives.empty() || lives.back() != life) lives.push_back(life);
  }

  /// Returns the last of the first `end` saves that made a checkpoint of that step.
  std::optional<std::size_t> source_among(std::size_t end, Step step) const {
    for (std::size_t i = end; i > 0; --i) {
      if (past_.saves[i - 1].step == step && was_there(i - 1)) return i - 1;
    }
    return std::nullopt;
  }

  /// True if the save made a checkpoint. If it did not end well, its checkpoint may be there
  /// anyway, unless an earlier save of the step made it. One that is newer than what the tracker
  /// names is none, even if it is whole: no load takes it.
  bool was_there(std::size_t i) const {
    const SavePoint& save = past_.saves[i];
    if (save.certain) return true;
    const auto& life = lives_[save.life];
    if (life.tracked_after && *life.tracked_after < save.step.value) return false;
    const auto& after = life.stored_after;
    const bool first = std::none_of(past_.saves.data(), &save, [&save](const SavePoint& before) {
      return before.step == save.step;
    });
    return first && after && contains(*after, save.step);
  }

  /// True if one of the first `end` saves replaced this save's checkpoint.
  bool has_heir(std::size_t i, std::size_t end) const {
    for (std::size_t later = i + 1; later < end; ++later) {
      if (past_.saves[later].step == past_.saves[i].step && was_there(later)) return true;
    }
    return false;
  }

  std::string state_of(std::size_t i) const {
    const SavePoint& save = past_.saves[i];
    if (!was_there(i)) return save.damaged ? "damaged" : "unfinished";
    if (has_heir(i, past_.saves.size())) return "replaced";
    const auto from = lives_.subspan(save.life);
    const bool damaged = std::any_of(from.begin(), from.end(), [&save](const auto& life) {
      return contains(life.damaged_after, save.step);
    });
    if (damaged) return "damaged";
    return contains(*stored_, save.step) ? "kept" : "pruned";
  }

  std::span<const LifeRecord> lives_;
  const std::vector<std::int64_t>* stored_ = nullptr;  ///< after the last life that was looked at
  Past past_;
  std::vector<reports::Generation> found_;  ///< one per save
};

}  // namespace

std::vector<reports::Generation> generations_of(std::span<const LifeRecord> lives) {
  return Generations(lives).all();
}

}  // namespace reprise::driver
