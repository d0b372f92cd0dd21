#pragma once
// planner_data says where a key stands in the nested state dict. Loads by key don't ask it; tools
// that put the nested dict together, such as torch's dcp_to_torch_save, believe it.

#include "core/engine/finding.hpp"
#include "core/format/metadata.hpp"

namespace reprise {

/// Warnings, one of a kind, for keys without a path and paths without a key, for a path that does
/// not spell its key, and for two keys with one path, of which such a tool loses one in silence.
/// Nothing where there is no planner_data. Pure.
Findings check_planner(const Metadata& metadata);

}  // namespace reprise
