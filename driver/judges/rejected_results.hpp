#pragma once
// Reads and writes the log of rejected results. It is a file next to the checkpoints, so it
// outlives each life of the job.

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
