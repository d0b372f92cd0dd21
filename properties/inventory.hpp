#pragma once
// Checks, key by key, that everything in the job goes into the checkpoint and comes back.

#include <span>
#include <string>
#include <vector>

#include "core/state/state_dict.hpp"
#include "properties/finding.hpp"

namespace reprise {

/// Sorted names: the keys of tensors, the keys of objects with their coordinates, or the paths of
/// entries of the common state.
using Inventory = std::vector<std::string>;

Inventory keys_of(const StateDict& state);
Inventory common_paths_of(const Value& common);

/// Checks that three sets of keys are equal: those of the job, of its save, and of its load. If a
/// key is excused, so are the objects with that key. Reports KEYSET_ASYMMETRY once for each key
/// that is not in all sets; the message says where it is missing.
judged::Findings judge_inventory(const Inventory& live, const Inventory& saved,
                                 const Inventory& requested, std::span<const std::string> excused);

/// Checks that all ranks together request exactly the keys of the checkpoint. Reports
/// KEYSET_ASYMMETRY once for each key that only one side has.
judged::Findings judge_request(const Inventory& requested, const Inventory& stored,
                               std::span<const std::string> excused);

/// Reports LOST_OBJECT for each entry that the live common state has and the saved common state
/// lacks.
judged::Findings judge_common_inventory(const Value& live, const Value& saved);

}  // namespace reprise
