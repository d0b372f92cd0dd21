#pragma once
// Reads a policy, a YAML file that says what reports must show, as a demand like a baseline.
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

#include "reports/gate/known_failures.hpp"

namespace reprise::cli {

/// Throws USAGE with line and column for a key or value that is not as above, for a space that
/// stands twice, for a lane that demands nothing, and for a policy that has neither a lane nor a
/// known failure: one with known failures may demand nothing of any lane. Throws NOT_FOUND if there
/// is no such file.
reports::Demand read_policy(const std::string& file);

}  // namespace reprise::cli
