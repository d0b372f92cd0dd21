#include "scenarios/driver/history.hpp"

#include <algorithm>

namespace reprise::driver {
namespace {

bool same_host_streams(const sim::Layout& a, const sim::Layout& b) {
  return a.tp == b.tp && a.pp == b.pp;
}
bool same_expert_streams(const sim::Layout& a, const sim::Layout& b) {
  return a.pp == b.pp && a.ep == b.ep && a.expert_tp() == b.expert_tp();
}

}  // namespace

void Position::train(std::int64_t steps) {
  step.value += steps;
  ages.host += steps;
  ages.expert += steps;
}

void Position::skip() { ++step.value; }

void Position::load(const SavePoint& saved) {
  step = saved.step;
  parent_step = saved.step.value;
  const auto age = [&saved](bool same, std::int64_t was) { return same && saved.random ? was : 0; };
  ages.host = age(same_host_streams(saved.layout, layout), saved.ages.host);
  ages.expert = age(same_expert_streams(saved.layout, layout), saved.ages.expert);
}

SavePoint Position::save(bool random) const {
  return {step, incarnation, layout, parent_step, ages, true, false, random};
}

std::vector<SavePoint> saves_before(const Scenario& scenario, std::size_t incarnation) {
  std::vector<SavePoint> saves;
  for (std::size_t i = 0; i < incarnation; ++i) {
    Position position{.incarnation = i, .layout = scenario.incarnations[i].layout};
    if (i > 0 && !saves.empty()) position.load(saves.back());
    for (const auto& action : scenario.incarnations[i].actions) {
      if (const auto* train = std::get_if<TrainAction>(&action)) position.train(train->steps);
      if (const auto* save = std::get_if<SaveAction>(&action)) {
        saves.push_back(position.save(save->random));
      }
      if (std::holds_alternative<LoadAction>(action) && !saves.empty()) {
        position.load(saves.back());
      }
    }
  }
  return saves;
}

const SavePoint* save_of(const std::vector<SavePoint>& saves, Step step) {
  const auto found = std::find_if(saves.rbegin(), saves.rend(),
                                  [step](const SavePoint& save) { return save.step == step; });
  return found == saves.rend() ? nullptr : &*found;
}

std::vector<const SavePoint*> saves_that_may_stand(const std::vector<SavePoint>& saves, Step step) {
  std::vector<const SavePoint*> may_stand;
  for (auto save = saves.rbegin(); save != saves.rend(); ++save) {
    if (save->step != step) continue;
    may_stand.push_back(&*save);
    if (save->certain) break;
  }
  return may_stand;
}

std::ptrdiff_t newest_certain(const std::vector<SavePoint>& saves) {
  std::ptrdiff_t newest = -1;
  for (std::size_t i = 0; i < saves.size(); ++i) {
    if (saves[i].certain) newest = static_cast<std::ptrdiff_t>(i);
  }
  return newest;
}

std::optional<Outcome> outcome_of(const std::vector<SavePoint>& saves, Step loaded) {
  const SavePoint* save = save_of(saves, loaded);
  if (save == nullptr) return std::nullopt;
  return save - saves.data() >= newest_certain(saves) ? Outcome::kContinued : Outcome::kFellBack;
}

}  // namespace reprise::driver
