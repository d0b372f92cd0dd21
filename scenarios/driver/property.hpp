#pragma once
// What must hold of every scenario that makes sense, and what is done with one of which it does
// not: it is shrunk and written to a file.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reports/report.hpp"
#include "scenarios/driver/distribution.hpp"
#include "scenarios/driver/generator.hpp"
#include "scenarios/driver/lane.hpp"

namespace reprise::driver {

/// How a scenario broke a property. Two failures are alike if verdict and code are the same.
struct Failure {
  std::string verdict;
  std::string code;    ///< of the first thing that was found
  std::string reason;  ///< in words

  bool like(const Failure& other) const { return verdict == other.verdict && code == other.code; }
};

struct Property {
  std::string_view name;
  std::string_view says;
  std::optional<Failure> (*check)(const Scenario&, const LaneOptions&);  ///< see failure_of()
  Scenario (*draw)(Stream random, const CaseLimits& limits);             ///< a case
  std::uint64_t cases;  ///< that are tried unless told otherwise
};

/// continuity    the scenario passes with elements compared on every rank that owns any and no bit
///               different, or is refused exactly as the requirements say
/// layout-free   what the job holds at the end has the digest of the same scenario on one rank
/// stored-alike  the tensors that the first incarnation stores are, by their bytes on disk, those
///               that it stores under the last one's layout
/// deterministic two runs have one event hash, verdict and digest
/// survives      with a random fault, too
std::span<const Property> properties();
/// USAGE with the names that there are.
const Property& property_named(std::string_view name);

/// How the scenario breaks the property, if it does; an error that comes through counts, too.
std::optional<Failure> failure_of(const Property& property, const Scenario& scenario,
                                  const LaneOptions& options);

/// A failure, made small.
struct Counterexample {
  Failure failure;
  Scenario scenario;      ///< with a `recorded` block if it fails on its own
  std::size_t tries = 0;  ///< variants that were run to get there
  std::string file;       ///< that it was written to; empty: none
};

struct PropertyRequest {
  std::uint64_t seed = 1;
  std::uint64_t cases = 100;
  CaseLimits limits;
  LaneOptions lane;
  std::string out;  ///< folder for counterexamples; empty: they are not written
};

/// Shrinks a scenario that fails so, and writes it as <out>/<property>-<code>-<hash>.yaml.
Counterexample shrink_and_keep(const Property& property, Scenario failing, const Failure& failure,
                               const PropertyRequest& request);

struct PropertyRun {
  reports::PropertyResult result;
  Distribution distribution;
  std::optional<Counterexample> counterexample;
};

/// A case of the property: it has its own ones of each seed.
Scenario case_of(const Property& property, std::uint64_t seed, std::uint64_t number,
                 const CaseLimits& limits);

/// Case after case; stops at the first failure.
PropertyRun run_property(const Property& property, const PropertyRequest& request);

/// A number from a commit's hash, so that each commit tries other cases and the same ones every
/// time; 1 where the commit is not known.
std::uint64_t seed_of_commit(std::string_view commit);

}  // namespace reprise::driver
