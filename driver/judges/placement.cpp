#include "driver/judges/placement.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "driver/judges/holders.hpp"
#include "driver/record/job_config.hpp"
#include "driver/record/past.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

/// The ranks that hold each box of a tensor.
using RanksByBox = std::map<Box, std::set<std::int32_t>>;

/// The lives on both sides of a checkpoint.
struct CheckpointSides {
  std::optional<std::size_t> saved;
  std::optional<Step> step;  ///< step of the save; empty if the life's last save is meant
  std::optional<std::size_t> loaded;
};

bool is_a_job(const Scenario& scenario, std::size_t life) {
  return life < scenario.lives.size() && !scenario.lives[life].command;
}

/// Returns the step of the life's last load; nothing if it loaded nothing.
std::optional<Step> loaded_step(const LifeRecord& life) {
  for (const auto& rank : life.ranks) {
    if (!rank.loads.empty()) return Step{rank.loads.back().step};
  }
  return std::nullopt;
}

/// Returns the save whose checkpoint the life loaded, or should have loaded if it loaded nothing;
/// null if none of these lives made it. `past` has the saves of this life and of all before it.
const SavePoint* source_of(const Past& past, std::optional<Step> loaded) {
  if (loaded) {
    const auto may_stand = saves_that_may_stand(past.saves, *loaded);
    return may_stand.empty() ? nullptr : may_stand.front();
  }
  const auto newest = newest_certain(past.saves);
  return newest < 0 ? nullptr : &past.saves[static_cast<std::size_t>(newest)];
}

CheckpointSides sides_of(const Scenario& scenario, std::span<const LifeRecord> lives,
                         const WrongTensor& wrong) {
  const auto loaded = loaded_step(lives[wrong.life]);
  if (wrong.at_save || (wrong.life == 0 && !loaded)) {
    CheckpointSides sides{.saved = wrong.life, .step = {}, .loaded = {}};
    for (auto next = wrong.life + 1; next < scenario.lives.size(); ++next) {
      if (!sides.loaded && is_a_job(scenario, next)) sides.loaded = next;
    }
    return sides;
  }
  Past past;
  const std::size_t before = loaded ? wrong.life + 1 : wrong.life;
  for (const auto& life : lives.first(before)) add_life(life, past);
  CheckpointSides sides{.saved = {}, .step = {}, .loaded = wrong.life};
  if (const SavePoint* source = source_of(past, loaded)) {
    sides.saved = source->life;
    sides.step = source->step;
  }
  return sides;
}

/// Returns the boxes that the ranks passed to the last save of that step. Returns none unless every
/// rank of the life recorded that save.
RanksByBox handed_over(const LifeRecord& life, std::optional<Step> step, const std::string& key) {
  RanksByBox boxes;
  for (const auto& rank : life.ranks) {
    const auto page =
        std::find_if(rank.audits.rbegin(), rank.audits.rend(),
                     [&](const AuditPage& one) { return !step || one.step == step->value; });
    if (page == rank.audits.rend()) return {};
    for (const auto& item : page->items) {
      // An object has no dimensions, and neither has a tensor of one element: it is not cut.
      if (item.key == key && item.box.ndim() > 0) boxes[item.box].insert(rank.result.rank);
    }
  }
  return boxes;
}

/// Returns the boxes that the ranks of a job without defects hold.
RanksByBox described(const Scenario& scenario, std::size_t life, const std::string& key) {
  RanksByBox boxes;
  if (!is_a_job(scenario, life)) return boxes;
  try {
    const Holders holders = holders_of(config_of(scenario, life));
    const auto found = holders.find(key);
    if (found == holders.end()) return boxes;
    for (const auto& [box, rank] : found->second) {
      if (!box.empty()) boxes[box].insert(rank.value);
    }
  } catch (const Error&) {  // the layout can't split the model
    boxes.clear();
  }
  return boxes;
}

/// Returns the smallest shape that contains all boxes, of which there must be one.
Dims bounds_of(const RanksByBox& boxes) {
  Dims bounds = Dims::filled(boxes.begin()->first.ndim(), 0);
  for (const auto& [box, ranks] : boxes) {
    for (std::size_t d = 0; d < std::min(bounds.size(), box.ndim()); ++d) {
      bounds[d] = std::max(bounds[d], box.interval(d).end);
    }
  }
  return bounds;
}

/// Removes what is outside of the shape: the padding of a vocabulary.
RanksByBox within(const Dims& shape, const RanksByBox& boxes) {
  RanksByBox inner;
  for (const auto& [box, ranks] : boxes) {
    if (box.ndim() != shape.size()) continue;
    if (const auto part = intersect(Box::whole(shape), box)) {
      inner[*part].insert(ranks.begin(), ranks.end());
    }
  }
  return inner;
}

bool holds(const Box& box, const std::vector<std::int64_t>& index) {
  if (index.empty() || index.size() != box.ndim()) return false;
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (index[d] < box.interval(d).begin || index[d] >= box.interval(d).end) return false;
  }
  return true;
}

std::optional<reports::TensorCut> cut_of(const RanksByBox& boxes, std::size_t life,
                                         const Scenario& scenario, const WrongTensor& wrong) {
  if (boxes.empty()) return std::nullopt;
  reports::TensorCut cut{.life = life};
  cut.layout = sim::to_string(modules_of(scenario, life));
  std::size_t room = reports::kPlacedBoxesMax;
  const auto matters = [&](const Box& box, const std::set<std::int32_t>& ranks) {
    return holds(box, wrong.index) || (wrong.rank && ranks.contains(*wrong.rank));
  };
  // Boxes that matter have a place even if they come late.
  for (const auto& [box, ranks] : boxes) room -= room > 0 && matters(box, ranks) ? 1 : 0;
  for (const auto& [box, ranks] : boxes) {
    const bool keep = matters(box, ranks) || room > 0;
    if (!keep || cut.boxes.size() == reports::kPlacedBoxesMax) {
      ++cut.boxes_left_out;
      continue;
    }
    if (!matters(box, ranks)) --room;
    cut.boxes.push_back({.offset = {box.offset.begin(), box.offset.end()},
                         .extent = {box.extent.begin(), box.extent.end()},
                         .ranks = {ranks.begin(), ranks.end()}});
  }
  return cut;
}

}  // namespace

std::optional<reports::TensorPlacement> placement_of(const Scenario& scenario,
                                                     std::span<const LifeRecord> lives,
                                                     const WrongTensor& wrong) {
  const CheckpointSides sides = sides_of(scenario, lives, wrong);
  RanksByBox saved;
  RanksByBox loaded;
  RanksByBox whole;  // boxes of a job without defects: they tell the shape
  if (sides.loaded) loaded = whole = described(scenario, *sides.loaded, wrong.key);
  if (sides.saved) {
    saved = handed_over(lives[*sides.saved], sides.step, wrong.key);
    if (saved.empty()) saved = described(scenario, *sides.saved, wrong.key);
    if (whole.empty()) whole = described(scenario, *sides.saved, wrong.key);
  }
  if (whole.empty()) whole = saved;
  if (whole.empty()) return std::nullopt;
  const Dims shape = bounds_of(whole);
  reports::TensorPlacement placement{.key = wrong.key,
                                     .shape = {shape.begin(), shape.end()},
                                     .rank = wrong.rank,
                                     .index = wrong.index};
  if (sides.saved) placement.saved = cut_of(within(shape, saved), *sides.saved, scenario, wrong);
  if (sides.loaded) placement.loaded = cut_of(loaded, *sides.loaded, scenario, wrong);
  return placement;
}

}  // namespace reprise::driver
