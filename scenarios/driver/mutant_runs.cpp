#include "scenarios/driver/mutant_runs.hpp"

#include <algorithm>
#include <mutex>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/print.hpp"
#include "scenarios/driver/run_jobs.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;

bool declares(const Scenario& scenario, std::string_view mutant) {
  return std::find(scenario.caught.begin(), scenario.caught.end(), mutant) != scenario.caught.end();
}

/// The verdict's own code counts: an effect behind another cause would be luck.
bool is_expected(const sim::Mutant& mutant, const std::string& code) {
  return std::find(mutant.caught_as.begin(), mutant.caught_as.end(), code) !=
         mutant.caught_as.end();
}

void require_known_mutants(const std::vector<Scenario>& scenarios) {
  for (const auto& scenario : scenarios) {
    try {
      for (const auto& name : scenario.caught) sim::mutant_named(name);
    } catch (const Error& error) {
      throw error.within({.file = scenario.file});
    }
  }
}

/// One run that has to be made: a scenario, with a mutant or without.
struct Task {
  std::size_t scenario = 0;
  const sim::Mutant* mutant = nullptr;
  ScenarioRun run = {};
};

std::vector<Task> tasks_of(const std::vector<Scenario>& scenarios, const std::string& only) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const std::size_t before = tasks.size();
    for (const auto& mutant : sim::mutants()) {
      if (!only.empty() && mutant.name != only) continue;
      if (!declares(scenarios[i], mutant.name)) continue;
      if (tasks.size() == before) tasks.push_back({.scenario = i});  // without any, once
      tasks.push_back({.scenario = i, .mutant = &mutant});
    }
  }
  return tasks;
}

void run_tasks(const std::vector<Scenario>& scenarios, const MutantRequest& request,
               const Started& started, std::vector<Task>& tasks) {
  std::mutex mutex;
  run_jobs(tasks.size(), request.jobs, [&](std::size_t t) {
    Task& task = tasks[t];
    const Scenario& scenario = scenarios[task.scenario];
    LaneOptions options = request.options;
    options.mutant = task.mutant == nullptr ? "" : std::string(task.mutant->name);
    {
      const std::lock_guard lock(mutex);
      const std::string with = options.mutant.empty() ? "" : " with " + options.mutant;
      started(t, tasks.size(), scenario.name + with);
    }
    task.run = run_watched(scenario, LaneKind::kSim, options);
  });
}

}  // namespace

Trial judge_trial(const sim::Mutant& mutant, const ScenarioRun& without, const ScenarioRun& with) {
  Trial trial{.scenario = with.result.name};
  const auto not_caught = [&trial](std::string why) {
    trial.reason = std::move(why);
    return trial;
  };
  if (without.result.verdict != Verdict::kPass) {
    return not_caught("does not pass without the mutant: " + without.result.code + ": " +
                      without.result.reason);
  }
  if (with.broke_down) {
    return not_caught("ended by a failed check or a deadline, which is no judgement: " +
                      with.result.reason);
  }
  if (with.result.verdict != Verdict::kFail) {
    return not_caught("the verdict with the mutant is " + reports::name_of(with.result.verdict));
  }
  if (!is_expected(mutant, with.result.code)) {
    return not_caught("failed as " + with.result.code + ", and it is to be caught as " +
                      join(mutant.caught_as, " or ") + ": " + with.result.reason);
  }
  trial.caught = true;
  trial.code = with.result.code;
  return not_caught(with.result.reason);
}

bool MutantOutcome::caught() const {
  return !trials.empty() &&
         std::all_of(trials.begin(), trials.end(), [](const Trial& trial) { return trial.caught; });
}

std::string_view MutantOutcome::verdict() const {
  if (trials.empty()) return "not declared";
  return caught() ? "caught" : "survived";
}

std::vector<MutantOutcome> run_mutants(const MutantRequest& request, const Started& started) {
  if (!request.only.empty()) sim::mutant_named(request.only);
  const auto scenarios = read_catalogue(request.selection);
  require_known_mutants(scenarios);
  std::vector<Task> tasks = tasks_of(scenarios, request.only);
  run_tasks(scenarios, request, started, tasks);

  std::vector<MutantOutcome> outcomes;
  for (const auto& mutant : sim::mutants()) {
    if (!request.only.empty() && mutant.name != request.only) continue;
    MutantOutcome outcome{.mutant = &mutant};
    const ScenarioRun* without = nullptr;
    for (const auto& task : tasks) {
      if (task.mutant == nullptr) without = &task.run;
      if (task.mutant == &mutant) {
        outcome.trials.push_back(judge_trial(mutant, *without, task.run));
      }
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

std::vector<reports::MutantResult> results_of(const std::vector<MutantOutcome>& outcomes) {
  std::vector<reports::MutantResult> results;
  for (const auto& outcome : outcomes) {
    reports::MutantResult result;
    result.name = outcome.mutant->name;
    result.defect = outcome.mutant->defect;
    result.caught = outcome.caught();
    for (const auto& trial : outcome.trials) {
      if (trial.caught) result.caught_by.push_back({trial.scenario, trial.code, trial.reason});
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace reprise::driver
