#pragma once
// Names the first element that differs, from a second run in which the ranks told the elements.

#include <optional>
#include <string>

#include "driver/witness/whole_state.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

struct ValueDifference {
  reports::FirstDifference first;
  RulingCode code = Code::kInternal;  ///< what the wrong value's source makes of it
  std::uint64_t elements = 0;         ///< that differ
  double max_delta = 0;
};

/// Compares the elements at the finding's save with the stored or the loaded ones. `work` is the
/// folder of the second run. Nothing if they are equal there, or were not told.
std::optional<ValueDifference> value_difference(const std::string& work, std::size_t lives,
                                                const WitnessFinding& finding);

}  // namespace reprise::driver
