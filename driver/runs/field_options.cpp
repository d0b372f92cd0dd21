#include "driver/runs/field_options.hpp"

#include "core/base/print.hpp"
#include "core/base/shell_word.hpp"
#include "driver/runs/stored_start.hpp"

namespace reprise::driver {
namespace {

constexpr sim::Sharding kReshardable = sim::Sharding::kFullyReshardable;

void override_saves(const FieldOptions& options, Scenario& scenario) {
  CheckpointPlan& checkpoint = scenario.checkpoint;
  checkpoint.optimizer = checkpoint.optimizer && !options.no_save_optim;
  checkpoint.random = checkpoint.random && !options.no_save_rng;
  if (options.save_interval == 0) return;
  for (auto& plan : scenario.lives) {
    for (auto& action : plan.actions) {
      if (auto* train = std::get_if<TrainAction>(&action)) {
        train->save_interval = options.save_interval;
      }
    }
  }
}

void override_loads(const FieldOptions& options, sim::LoadChoice& load) {
  load.optimizer = load.optimizer && !options.no_load_optim;
  load.schedule = load.schedule && !options.no_load_scheduler;
  load.random = load.random && !options.no_load_rng;
  load.finetune = load.finetune || options.finetune;
}

void override_sharding(Scenario& scenario) {
  scenario.optimizer_sharding = kReshardable;
  for (auto& plan : scenario.lives) {
    plan.optimizer_sharding = kReshardable;
    for (auto& module : plan.modules) module.optimizer_sharding = kReshardable;
  }
}

/// Returns the options as on a command line. Option --load comes last, without its directory.
std::string words_of(const FieldOptions& options) {
  std::vector<std::string> words;
  const auto flag = [&words](bool set, const char* name) {
    if (set) words.emplace_back(name);
  };
  if (options.save_interval > 0) {
    words.push_back("--save-interval " + std::to_string(options.save_interval));
  }
  flag(options.no_save_optim, "--no-save-optim");
  flag(options.no_save_rng, "--no-save-rng");
  flag(options.no_load_optim, "--no-load-optim");
  flag(options.no_load_scheduler, "--no-load-scheduler");
  flag(options.no_load_rng, "--no-load-rng");
  flag(options.finetune, "--finetune");
  flag(options.fully_reshardable, "--dist-ckpt-optim-fully-reshardable");
  flag(!options.load.empty(), "--load");
  return join(words, " ");
}

}  // namespace

std::string to_string(const FieldOptions& options) {
  return words_of(options) + (options.load.empty() ? "" : " " + shell_word(options.load));
}

void override_by(const FieldOptions& options, std::vector<Scenario>& scenarios) {
  if (!options.any()) return;
  for (auto& scenario : scenarios) {
    override_saves(options, scenario);
    for (auto& plan : scenario.lives) override_loads(options, plan.load);
    if (options.fully_reshardable) override_sharding(scenario);
    if (!options.load.empty()) begin_from(stored_start(options.load, scenario), scenario);
    scenario.name += "{" + words_of(options) + "}";
  }
}

}  // namespace reprise::driver
