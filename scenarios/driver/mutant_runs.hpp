#pragma once
// Each mutant against the scenarios that declare to catch it.

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/driver/run.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::driver {

/// One mutant in one scenario.
struct Trial {
  std::string scenario;
  bool caught = false;
  std::string code;    ///< that it was caught as
  std::string reason;  ///< the verdict's, or why it does not count
};

/// Caught: the scenario passes without the mutant and fails with it, its verdict's code one that
/// the mutant is to be caught as, and not by a CHECK, an unexpected exception or a deadline. Pure.
Trial judge_trial(const sim::Mutant& mutant, const ScenarioRun& without, const ScenarioRun& with);

struct MutantOutcome {
  const sim::Mutant* mutant = nullptr;
  std::vector<Trial> trials;  ///< in the scenarios' order; empty: no scenario declares it

  /// Some scenario declares it, and all that do catch it.
  bool caught() const;
  /// In a word or two: "caught", "survived", "not declared".
  std::string_view verdict() const;
};

struct MutantRequest {
  Selection selection;
  std::string only;  ///< a mutant's name; empty: all
  LaneOptions options;
  std::size_t jobs = 1;
};

/// All mutants, or one, in the registry's order, on the simulated lane. USAGE for a scenario that
/// declares a mutant that does not exist.
std::vector<MutantOutcome> run_mutants(const MutantRequest& request, const Started& started);

std::vector<reports::MutantResult> results_of(const std::vector<MutantOutcome>& outcomes);

}  // namespace reprise::driver
