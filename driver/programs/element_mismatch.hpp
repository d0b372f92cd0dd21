#pragma once
// Finds the first wrong element of a tensor. Reads the elements that the ranks wrote out in a
// second run of the scenario.

#include <optional>
#include <string>

#include "driver/witness/whole_state.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

struct ElementMismatch {
  reports::FirstDifference first;
  /// Code of the failure; depends on where the wrong value comes from.
  FindingCode code = Code::kInternal;
  std::uint64_t elements = 0;  ///< number of elements that differ
  double max_delta = 0;
};

/// Compares the stored or loaded elements of the finding's tensor with the elements that the tensor
/// had at the save. `work` is the directory of the second run. Returns nothing if the elements are
/// equal in that run, or if no rank reported them.
std::optional<ElementMismatch> first_mismatch(const std::string& work, std::size_t lives,
                                              const Finding& finding);

}  // namespace reprise::driver
