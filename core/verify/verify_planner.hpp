#pragma once
// Checks planner_data, which says where each key belongs in the nested state dict. A load by key
// ignores planner_data. Tools that rebuild the nested dict, such as torch's dcp_to_torch_save, rely
// on planner_data.

#include "core/checkpoint/finding.hpp"
#include "core/format/metadata.hpp"

namespace reprise {

/// Returns one warning per kind of problem: keys without a path, paths without a key, a path that
/// does not spell its key, and two keys with one path. (A tool that rebuilds the nested dict
/// silently loses one of two such keys.) Empty if there is no planner_data. Pure.
Findings check_planner(const Metadata& metadata);

}  // namespace reprise
