#include "driver/record/history.hpp"

#include <algorithm>

#include "driver/record/job_config.hpp"

namespace reprise::driver {
namespace {

/// True if a job that loads the save differs from a job that never stopped.
bool is_a_turn(const SavePoint& saved, const std::vector<sim::ModuleConfig>& own,
               const sim::LoadChoice& choice) {
  const bool whole =
      saved.optimizer && !saved.release && choice.optimizer && choice.schedule && !choice.finetune;
  const bool same = saved.modules.size() == own.size() &&
                    std::all_of(own.begin(), own.end(), [&saved](const auto& module) {
                      const auto* other = sim::module_named(saved.modules, module.name);
                      return other != nullptr && other->frozen == module.frozen;
                    });
  return !whole || !same;
}

}  // namespace

std::vector<sim::ModuleConfig> modules_of(const Scenario& scenario, std::size_t life) {
  auto modules = sim::modules_of(config_of(scenario, life));
  for (auto& module : modules) {
    module.ranks = sim::members_of(module.layout, module.ranks).members();
  }
  return modules;
}

Position::Position(const Scenario& scenario, std::size_t life)
    : life_(life),
      modules_(modules_of(scenario, life)),
      choice_(scenario.lives[life].load),
      random_by_dp_(scenario.random_by_dp) {
  for (const auto& module : modules_) ages[module.name] = {};
}

void Position::train(std::int64_t steps) {
  step.value += steps;
  for (auto& [module, age] : ages) {
    age.host += steps;
    age.expert += steps;
  }
}

void Position::skip() { ++step.value; }

void Position::load(const SavePoint& saved) {
  const bool fresh = choice_.finetune || saved.release;
  step = fresh ? Step{0} : saved.step;
  parent_step = saved.step.value;
  for (const auto& module : modules_) {
    ages[module.name] = {};
    const auto* source = sim::module_named(saved.modules, module.name);
    if (source == nullptr || !saved.random || !choice_.random || fresh) continue;
    const auto was = saved.ages.find(module.name);
    if (was == saved.ages.end()) continue;
    if (sim::same_dense_streams(source->layout, module.layout, random_by_dp_)) {
      ages[module.name].host = was->second.host;
    }
    if (sim::same_expert_streams(source->layout, module.layout)) {
      ages[module.name].expert = was->second.expert;
    }
  }
  turns = saved.turns;
  if (!is_a_turn(saved, modules_, choice_)) return;
  turns.push_back({saved.step, life_, saved.optimizer, saved.release});
}

SavePoint Position::save(const SaveAction& action) const {
  return {.step = step,
          .life = life_,
          .modules = modules_,
          .parent_step = parent_step,
          .ages = ages,
          .random = action.random,
          .optimizer = action.optimizer,
          .turns = turns};
}

std::vector<SavePoint> saves_before(const Scenario& scenario, std::size_t life) {
  std::vector<SavePoint> saves;
  for (std::size_t i = 0; i < life; ++i) {
    Position position(scenario, i);
    if (i > 0 && !saves.empty()) position.load(saves.back());
    for (const auto& action : scenario.lives[i].actions) {
      if (const auto* train = std::get_if<TrainAction>(&action)) position.train(train->steps);
      if (const auto* save = std::get_if<SaveAction>(&action)) {
        saves.push_back(position.save(*save));
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
