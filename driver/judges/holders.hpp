#pragma once
// Finds the rank that holds each box of each tensor, to name the source of a wrong element.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "properties/global_state.hpp"
#include "sim/job/job.hpp"

namespace reprise::driver {

/// The holders of each tensor, by key: main copies first, then sorted by rank. holders_of() builds
/// every rank's job without communication and takes the boxes that the job holds in model space.
using Holders = std::map<std::string, std::vector<Holder>>;
Holders holders_of(const sim::JobConfig& config);

/// Builds the jobs as holders_of() does, and returns the values of the objects in `keys` (a key
/// includes coordinate and grid). Omits keys that no rank has.
std::map<std::string, Value> objects_of(const sim::JobConfig& config, std::set<std::string> keys);

}  // namespace reprise::driver
