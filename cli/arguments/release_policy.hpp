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

#include <string>

#include "reports/policy.hpp"

namespace reprise::cli {

/// Throws USAGE with line and column for a key or value that is not as above, for a space that
/// stands twice, and for a policy or a lane that demands nothing. Throws NOT_FOUND if there is no
/// such file.
reports::Policy read_policy(const std::string& file);

}  // namespace reprise::cli
