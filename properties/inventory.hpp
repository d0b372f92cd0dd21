#pragma once
// Does everything that the job has also go into the checkpoint, and come back? Keys alone.

#include <span>
#include <string>
#include <vector>

#include "core/state/state_dict.hpp"
#include "properties/ruling.hpp"

namespace reprise {

/// Sorted names: tensors by key, objects by key with coordinate, entries of the common state by
/// path.
using Inventory = std::vector<std::string>;

Inventory keys_of(const StateDict& state);
Inventory common_paths_of(const Value& common);

/// The three sets must be the same: what the job has, what it hands to a save, what it requests of
/// a load. An excused key covers the objects of that key, too. One KEYSET_ASYMMETRY for each key,
/// saying which side lacks it.
Rulings judge_inventory(const Inventory& live, const Inventory& saved, const Inventory& requested,
                        std::span<const std::string> excused);

/// What all ranks together request of a load is what the checkpoint holds. One KEYSET_ASYMMETRY for
/// each key that is not.
Rulings judge_request(const Inventory& requested, const Inventory& stored,
                      std::span<const std::string> excused);

/// Every entry of the live common state is saved: LOST_OBJECT for each that is not.
Rulings judge_common_inventory(const Value& live, const Value& saved);

}  // namespace reprise
