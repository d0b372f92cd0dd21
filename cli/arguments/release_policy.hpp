#pragma once
// Reads the policy of a release: a YAML file that says what reports must show.
//
//   lanes:
//     sim:
//       scenarios: 2490          least number of scenarios that ran; each number may be left out
//       skipped: 0               greatest number of skipped ones; none if left out
//       doubled: 2490            least number of scenarios that ran twice
//       property_cases: 140      least number of random cases, of all properties together
//       mutants: all             every mutant of this program must be there and caught
//       exhaustive:              least number of pairs of layouts, space by space
//         - {sharding: fully_reshardable, pairs: 110889}
//         - {sharding: fully_reshardable, hsdp: true, pairs: 322624}
//   known_failures:              what may fail until a date
//     - scenario: rerun/change   or property: NAME, or mutant: NAME
//       lane: mpi                sim if left out
//       code: HANG               the code that it fails with; left out for a mutant
//       reason: the launcher of this cluster loses a signal
//       owner: jane
//       expires: 2026-12-31      the last day on which it is accepted

#include <string>
#include <vector>

#include "reports/gate/known_failures.hpp"
#include "reports/gate/policy.hpp"

namespace reprise::cli {

/// The content of a policy file. A file with known failures may demand nothing of any lane.
struct ReleasePolicy {
  reports::Policy lanes;
  std::vector<reports::KnownFailure> known_failures;
};

/// Throws USAGE with line and column for a key or value that is not as above, for a space that
/// stands twice, for a lane that demands nothing, and for a policy that has neither a lane nor a
/// known failure. Throws NOT_FOUND if there is no such file.
ReleasePolicy read_policy(const std::string& file);

}  // namespace reprise::cli
