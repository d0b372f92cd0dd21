#pragma once
// Each mutant against the scenarios that declare to catch it, and against random ones.

#include <cstdint>
#include <optional>
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
  bool asked = true;   ///< false: nothing was asked of the mutant, so it could not be caught
  std::string code;    ///< that it was caught as
  std::string reason;  ///< the verdict's, or why it does not count
};

/// Caught: the scenario passes without the mutant and fails with it, its verdict's code one that
/// the mutant is to be caught as, and not by a CHECK, an unexpected exception or a deadline. Pure.
Trial judge_trial(const sim::Mutant& mutant, const ScenarioRun& without, const ScenarioRun& with);

/// One mutant in random cases of one property, up to the first that catches it.
struct PropertyTrial {
  std::string property;
  std::uint64_t cases = 0;      ///< that were tried
  std::uint64_t asked = 0;      ///< those of them that asked something of the mutant
  std::optional<Trial> caught;  ///< its scenario is "case 3 of seed 1"
};

struct MutantOutcome {
  const sim::Mutant* mutant = nullptr;
  std::vector<Trial> trials;  ///< in the scenarios' order; empty: no scenario declares it
  std::vector<PropertyTrial> properties;  ///< what they find is told; it makes no verdict

  /// Some scenario declares it, and all that do catch it.
  bool caught() const;
  /// True if some scenario asked nothing of it, and all others caught it.
  bool inconclusive() const;
  /// In a word or two: "caught", "survived", "not asked", "not declared".
  std::string_view verdict() const;
};

struct MutantRequest {
  Selection selection;
  std::string only;  ///< a mutant's name; empty: all
  LaneOptions options;
  std::size_t jobs = 1;
  /// Random cases of each property that is a verdict on one run (continuity, survives), for each
  /// mutant that some scenario declares; 0: none. They are those of options.seed.
  std::uint64_t property_cases = 0;
};

/// All mutants, or one, in the registry's order, on the simulated lane. USAGE for a scenario that
/// declares a mutant that does not exist.
std::vector<MutantOutcome> run_mutants(const MutantRequest& request, const Started& started);

std::vector<reports::MutantResult> results_of(const std::vector<MutantOutcome>& outcomes);

}  // namespace reprise::driver
