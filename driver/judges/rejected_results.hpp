#pragma once
// Log of rejected results. It outlives the lives of a job, next to its checkpoints.

#include <string>
#include <vector>

#include "reprise/store.hpp"

namespace reprise::driver {

/// Returns the lines that earlier lives wrote; none if there is no file.
std::vector<std::string> rejected_results(Store& store, const std::string& root);
/// Appends lines durably. Only one rank calls it.
void add_rejected_results(Store& store, const std::string& root,
                          const std::vector<std::string>& lines);

}  // namespace reprise::driver
