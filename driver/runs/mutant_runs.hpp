#pragma once
// Runs each mutant in the scenarios that declare it, and in random scenarios.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/runs/run.hpp"
#include "sim/mutants/mutants.hpp"

namespace reprise::driver {

/// The trial of a mutant in a single scenario.
struct Trial {
  std::string scenario;
  bool caught = false;
  bool asked = true;   ///< false if the mutant was never called, so that nothing could catch it
  std::string code;    ///< code of the failure that caught the mutant
  std::string reason;  ///< reason of the verdict, or why the trial does not count
};

/// Returns the trial of a mutant. The mutant is caught if the scenario passes without it and fails
/// with it. The failure must have a code that the mutant declares, and must not come from a CHECK,
/// an unexpected exception or a deadline. Pure.
Trial judge_trial(const sim::Mutant& mutant, const ScenarioRun& without, const ScenarioRun& with);

/// The trials of a mutant in random cases of one property. Once a case has caught the mutant, no
/// further cases are run.
struct PropertyTrial {
  std::string property;
  std::uint64_t cases = 0;  ///< number of cases run
  std::uint64_t asked = 0;  ///< number of cases that called the mutant
  /// Trial that caught the mutant; Trial::scenario names the case and the seed.
  std::optional<Trial> caught;
};

struct MutantOutcome {
  const sim::Mutant* mutant = nullptr;
  std::vector<Trial> trials;  ///< in the order of the scenarios; empty if none declares the mutant
  std::vector<PropertyTrial> properties;  ///< reported, but without effect on the verdict
  /// Numbers of scenarios and of properties that an interruption kept from being tried.
  std::size_t untried_scenarios = 0;
  std::size_t untried_properties = 0;

  /// True if at least one scenario declares the mutant, and every such scenario catches it.
  bool caught() const;
  /// True if some scenario was not tried or never called the mutant, and all other scenarios caught
  /// it.
  bool inconclusive() const;
  /// Returns "caught", "survived", "not tried", "not asked" or "not declared".
  std::string_view verdict() const;
};

/// Throws USAGE for a scenario that declares a mutant that does not exist.
void require_known_mutants(const std::vector<Scenario>& scenarios);

struct MutantRequest {
  Selection selection;
  std::string only;  ///< name of the only mutant to run; empty for all
  /// Of the mutants in registry order, only every `shards`-th one, from number `shard` on.
  std::size_t shard = 1;
  std::size_t shards = 1;
  LaneOptions options;
  std::size_t jobs = 1;
  bool whole = false;  ///< run_matrix: false to run one row of each file, drawn by selection.seed
  /// Number of random cases per mutant and property; 0 for none. Random cases are run for each
  /// mutant that some scenario declares, and for each property that judges a single run
  /// (continuity, survives). They depend on options.seed.
  std::uint64_t property_cases = 0;
  /// Asked before each run. If it returns true, no further run begins.
  std::function<bool()> interrupted = [] { return false; };
};

/// Returns the mutants of the request, in registry order. Throws USAGE for an unknown name.
std::vector<const sim::Mutant*> wanted_mutants(const MutantRequest& request);

/// Runs these mutants on the simulated lane. Throws USAGE if a scenario declares an unknown mutant.
std::vector<MutantOutcome> run_mutants(const MutantRequest& request, const Started& started);

std::vector<reports::MutantResult> results_of(const std::vector<MutantOutcome>& outcomes);

}  // namespace reprise::driver
