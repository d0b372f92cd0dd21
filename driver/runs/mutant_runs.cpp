#include "driver/runs/mutant_runs.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/print.hpp"
#include "driver/runs/property.hpp"
#include "driver/runs/run_jobs.hpp"
#include "properties/finding_code.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;

bool declares(const Scenario& scenario, std::string_view mutant) {
  return std::find(scenario.caught.begin(), scenario.caught.end(), mutant) != scenario.caught.end();
}

bool is_expected(const sim::Mutant& mutant, const std::string& code) {
  return std::any_of(mutant.caught_as.begin(), mutant.caught_as.end(),
                     [&code](FindingCode expected) { return name_of(expected) == code; });
}

/// Returns the code of the verdict if the mutant declares it; otherwise nothing. Codes of further
/// findings are not accepted, because something other than the mutant may have caused them; but a
/// broken protocol is the cause of the harm that follows, and the mutant declares the harm.
std::string expected_code(const sim::Mutant& mutant, const reports::ScenarioResult& result) {
  if (is_expected(mutant, result.code)) return result.code;
  if (result.code != name_of(judged::kProtocol) || !result.failure) return "";
  for (const auto& follows : result.failure->consequences) {
    if (is_expected(mutant, follows.code)) return follows.code;
  }
  return "";
}

/// One run to make: a scenario with a mutant, or without one.
struct PlannedRun {
  std::size_t scenario = 0;
  const sim::Mutant* mutant = nullptr;
  std::optional<ScenarioRun> run = {};  ///< empty if an interruption came first
};

std::vector<PlannedRun> planned_runs(const std::vector<Scenario>& scenarios,
                                     const std::vector<const sim::Mutant*>& mutants) {
  std::vector<PlannedRun> runs;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const std::size_t before = runs.size();
    for (const auto* mutant : mutants) {
      if (!declares(scenarios[i], mutant->name)) continue;
      // Each scenario with mutants also runs once without one.
      if (runs.size() == before) runs.push_back({.scenario = i});
      runs.push_back({.scenario = i, .mutant = mutant});
    }
  }
  return runs;
}

void run_planned(const std::vector<Scenario>& scenarios, const MutantRequest& request,
                 const Started& started, std::vector<PlannedRun>& runs) {
  run_jobs(runs.size(), request.jobs, [&](std::size_t t) {
    if (request.interrupted()) return;
    PlannedRun& planned = runs[t];
    const Scenario& scenario = scenarios[planned.scenario];
    LaneOptions options = request.options;
    options.mutant = planned.mutant == nullptr ? "" : std::string(planned.mutant->name);
    started(t, runs.size(),
            scenario.name + (options.mutant.empty() ? "" : " with " + options.mutant));
    planned.run = run_watched(scenario, LaneKind::kSim, options);
  });
}

/// Returns the name of a case, with the numbers needed to repeat it.
std::string name_of_case(std::uint64_t number, std::uint64_t seed) {
  return "case " + std::to_string(number) + " of seed " + std::to_string(seed);
}

/// The properties whose cases need only one run each. A case is a scenario, so its run under a
/// mutant is judged like any other run of a scenario.
constexpr std::array kOfOneRun = {std::string_view("continuity"), std::string_view("survives")};

/// The random cases of one property, with their results without a mutant.
struct Cases {
  const Property* property = nullptr;
  std::vector<Scenario> scenarios;
  std::vector<ScenarioRun> without;
};

std::vector<Cases> cases_of(const MutantRequest& request) {
  std::vector<Cases> all;
  if (request.property_cases == 0) return all;
  for (const auto name : kOfOneRun) {
    Cases& cases = all.emplace_back();
    cases.property = &property_named(name);
    for (std::uint64_t n = 0; n < request.property_cases; ++n) {
      cases.scenarios.push_back(case_of(*cases.property, request.options.seed, n, {}));
      cases.scenarios.back().name = name_of_case(n, request.options.seed);
    }
    cases.without.resize(cases.scenarios.size());
    run_jobs(cases.scenarios.size(), request.jobs, [&](std::size_t i) {
      if (request.interrupted()) return;
      cases.without[i] = run_watched(cases.scenarios[i], LaneKind::kSim, request.options);
    });
  }
  return all;
}

/// Returns nothing if an interruption came before the last case.
std::optional<PropertyTrial> try_cases(const sim::Mutant& mutant, const Cases& cases,
                                       const MutantRequest& request) {
  PropertyTrial result{.property = std::string(cases.property->name)};
  LaneOptions options = request.options;
  options.mutant = mutant.name;
  for (std::size_t i = 0; i < cases.scenarios.size() && !result.caught; ++i) {
    if (request.interrupted()) return std::nullopt;
    const auto run = run_watched(cases.scenarios[i], LaneKind::kSim, options);
    Trial trial = judge_trial(mutant, cases.without[i], run);
    ++result.cases;
    if (!run.unasked) ++result.asked;
    if (trial.caught) result.caught = std::move(trial);
  }
  return result;
}

void try_properties(const MutantRequest& request, const Started& started,
                    std::vector<MutantOutcome>& outcomes) {
  const std::vector<Cases> all = cases_of(request);
  std::vector<MutantOutcome*> declared;
  for (auto& outcome : outcomes) {
    if (outcome.verdict() != "not declared") declared.push_back(&outcome);
  }
  run_jobs(all.empty() ? 0 : declared.size(), request.jobs, [&](std::size_t i) {
    MutantOutcome& outcome = *declared[i];
    started(i, declared.size(), "random cases with " + std::string(outcome.mutant->name));
    for (const auto& cases : all) {
      auto trial = try_cases(*outcome.mutant, cases, request);
      if (trial) outcome.properties.push_back(std::move(*trial));
      if (!trial) ++outcome.untried_properties;
    }
  });
}

}  // namespace

std::vector<const sim::Mutant*> wanted_mutants(const MutantRequest& request) {
  if (!request.only.empty()) sim::mutant_named(request.only);
  std::vector<const sim::Mutant*> wanted;
  std::size_t index = 0;
  for (const auto& mutant : sim::mutants()) {
    const bool own = index++ % request.shards == request.shard - 1;
    if (own && (request.only.empty() || mutant.name == request.only)) wanted.push_back(&mutant);
  }
  return wanted;
}

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
    return not_caught("ended by a failed check or a deadline, which does not count as caught: " +
                      with.result.reason);
  }
  trial.asked = !with.unasked;
  if (with.unasked) return not_caught(with.result.reason);
  if (with.result.verdict != Verdict::kFail) {
    return not_caught("the verdict with the mutant is " + reports::name_of(with.result.verdict));
  }
  const std::string code = expected_code(mutant, with.result);
  if (code.empty()) {
    return not_caught("failed as " + with.result.code + ", but should be caught as " +
                      join(mutant.caught_as, " or ") + ": " + with.result.reason);
  }
  trial.caught = true;
  trial.code = code;
  return not_caught(with.result.reason);
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

bool MutantOutcome::caught() const {
  return !trials.empty() && untried_scenarios == 0 &&
         std::all_of(trials.begin(), trials.end(), [](const Trial& trial) { return trial.caught; });
}

bool MutantOutcome::inconclusive() const {
  return !caught() && (!trials.empty() || untried_scenarios > 0) &&
         std::all_of(trials.begin(), trials.end(),
                     [](const Trial& trial) { return trial.caught || !trial.asked; });
}

std::string_view MutantOutcome::verdict() const {
  if (trials.empty() && untried_scenarios == 0) return "not declared";
  if (inconclusive()) return untried_scenarios > 0 ? "not tried" : "not asked";
  return caught() ? "caught" : "survived";
}

std::vector<MutantOutcome> run_mutants(const MutantRequest& request, const Started& started) {
  const auto mutants = wanted_mutants(request);
  const auto scenarios = read_catalogue(request.selection);
  require_known_mutants(scenarios);
  std::vector<PlannedRun> runs = planned_runs(scenarios, mutants);
  run_planned(scenarios, request, started, runs);

  std::vector<MutantOutcome> outcomes;
  for (const auto* mutant : mutants) {
    MutantOutcome outcome{.mutant = mutant};
    const ScenarioRun* without = nullptr;
    for (const auto& planned : runs) {
      if (planned.mutant == nullptr) without = planned.run ? &*planned.run : nullptr;
      if (planned.mutant != mutant) continue;
      if (without == nullptr || !planned.run) {
        ++outcome.untried_scenarios;
      } else {
        outcome.trials.push_back(judge_trial(*mutant, *without, *planned.run));
      }
    }
    outcomes.push_back(std::move(outcome));
  }
  try_properties(request, started, outcomes);
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
    for (const auto& trial : outcome.properties) {
      result.property_cases += trial.asked;
      // A mutant that some scenario did not catch has survived, even if a random case caught it.
      if (!trial.caught || !result.caught) continue;
      result.caught_by.push_back({.scenario = {},
                                  .verdict = trial.caught->code,
                                  .reason = trial.caught->scenario + ": " + trial.caught->reason,
                                  .property = trial.property});
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace reprise::driver
