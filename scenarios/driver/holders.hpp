#pragma once
// Who holds which box of each tensor under a layout: for saying whose value a wrong element is.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "properties/global_state.hpp"
#include "sim/job/job.hpp"

namespace reprise::driver {

/// By key, main copies first, then by rank. Found by making every rank's job, without any
/// communication, and asking it what it holds in model space.
using Holders = std::map<std::string, std::vector<Holder>>;
Holders holders_of(const sim::JobConfig& config);

/// The values that the named objects (with coordinate and grid) have in a job that was just made,
/// found likewise; what no rank has is left out.
std::map<std::string, Value> objects_of(const sim::JobConfig& config, std::set<std::string> keys);

}  // namespace reprise::driver
