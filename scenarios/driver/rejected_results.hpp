#pragma once
// The log of rejected results, which outlives the lives of a job beside its checkpoints.

#include <string>
#include <vector>

#include "reprise/store.hpp"

namespace reprise::driver {

/// The lines that earlier lives wrote; none if there is no file.
std::vector<std::string> rejected_results(Store& store, const std::string& root);
/// Puts lines behind those that are there, durably. One rank calls it.
void add_rejected_results(Store& store, const std::string& root,
                          const std::vector<std::string>& lines);

}  // namespace reprise::driver
