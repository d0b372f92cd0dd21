#pragma once
// Checks properties that must hold for every scenario that makes sense. A scenario that breaks a
// property is shrunk and written to a file.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/diff/diff.hpp"
#include "driver/lanes/lane.hpp"
#include "driver/random/case_distribution.hpp"
#include "driver/random/generator.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

/// Describes how a scenario broke a property. Two failures count as the same if verdict and code
/// are equal.
struct Failure {
  std::string verdict;
  std::string code;    ///< code of the first problem
  std::string reason;  ///< explanation in words

  bool like(const Failure& other) const { return verdict == other.verdict && code == other.code; }
};

struct Property {
  std::string_view name;
  std::string_view says;
  /// Returns how the scenario breaks the property; nothing if it does not. failure_of() calls this.
  std::function<std::optional<Failure>(const Scenario&, const LaneOptions&)> check;
  std::function<Scenario(Stream random, const CaseLimits& limits)> draw;  ///< draws a case
  std::uint64_t cases;  ///< default number of cases
};

/// Returns the properties:
///
///   continuity    the scenario passes: each rank that owns elements compared some, and none
///                 differed; or a load is refused exactly as the requirements say
///   layout-free   the final state has the same digest as if the scenario ran on one rank
///   stored-alike  the first life stores tensors with the same bytes, whether it has its
///                 own layout or that of the last life
///   deterministic two runs have the same event hash, verdict and digest
///   survives      continuity also holds with a random fault
///   ranks-renamed, keys-renamed, saved-twice, saved-in-two, tensor-added, other-writers,
///   fewer-writers
///                 the relations of metamorphic.hpp: a change that must change no content
std::span<const Property> properties();
/// Returns the property of that name. Throws USAGE with the known names if there is none.
const Property& property_named(std::string_view name);

/// Returns how the scenario breaks the property; nothing if it does not. A thrown error counts as a
/// failure.
std::optional<Failure> failure_of(const Property& property, const Scenario& scenario,
                                  const LaneOptions& options);

/// Returns what a passed result lacks: each rank that owns elements must have compared some, and no
/// bit may differ. A load that had to be refused compares nothing.
std::optional<Failure> judge_evidence(const Scenario& scenario,
                                      const reports::ScenarioResult& result);
/// Requires that two runs end with the same content. `where` says in words what is other about the
/// second.
std::optional<Failure> judge_content(const reports::ScenarioResult& first,
                                     const reports::ScenarioResult& second,
                                     const std::string& where);
/// Requires that two runs of one scenario took the same course.
std::optional<Failure> judge_repeated(const reports::ScenarioResult& first,
                                      const reports::ScenarioResult& second);
/// Requires that two checkpoints hold the same tensors. Vocabularies of `modules` that are padded
/// for another number of ranks may have another shape.
std::optional<Failure> judge_diff(const DiffReport& report,
                                  const std::vector<sim::ModuleConfig>& modules);

/// A failure and the scenario to which it was shrunk.
struct Counterexample {
  Failure failure;
  Scenario scenario;      ///< smallest form; has a `recorded` block if it also fails in a plain run
  std::size_t tries = 0;  ///< number of variants that were run
  std::string file;       ///< path of the written file; empty if none was written
};

struct PropertyRequest {
  std::uint64_t seed = 1;
  std::uint64_t cases = 100;
  CaseLimits limits;
  LaneOptions lane;
  std::string out;  ///< directory for counterexamples; if empty, they are not written
  /// Asked before each case and each smaller form of one that failed. If it returns true, no more
  /// of them are run.
  std::function<bool()> interrupted = [] { return false; };
};

/// Shrinks `failing`, keeping the verdict and code of `failure`, and writes the result as
/// <out>/<property>-<code>-<hash>.yaml.
Counterexample shrink_and_keep(const Property& property, Scenario failing, const Failure& failure,
                               const PropertyRequest& request);

struct PropertyRun {
  reports::PropertyResult result;
  CaseDistribution distribution;
  std::optional<Counterexample> counterexample;
  std::uint64_t untried = 0;  ///< number of cases that an interruption kept from being run
};

/// Returns a case of the property. Each property draws different cases from the same seed.
Scenario case_of(const Property& property, std::uint64_t seed, std::uint64_t number,
                 const CaseLimits& limits);

/// Runs case after case and stops at the first failure. Without a failure, the verdict is
/// inconclusive if an interruption kept cases from being run.
PropertyRun run_property(const Property& property, const PropertyRequest& request);

/// Returns a seed derived from a commit's hash, so that different commits try different cases, and
/// all runs of one commit try the same cases. Returns 1 if the commit is unknown.
std::uint64_t seed_of_commit(std::string_view commit);

}  // namespace reprise::driver
