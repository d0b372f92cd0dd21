#pragma once
// Makes a content source that reads a rank's own leaves.

#include <memory>
#include <vector>

#include "core/geometry/piece.hpp"
#include "core/save/image_writer.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// Source of an item's elements: one piece of a leaf. Both pointers are null for an object.
struct LeafOrigin {
  const TensorLeaf* leaf = nullptr;
  const Piece* piece = nullptr;
};

/// Returns a source that gathers elements from the leaves straight into the output, without an
/// intermediate copy. Item i comes from `origins[i]`; the leaves must live until the last fill().
std::unique_ptr<ContentSource> leaf_source(Device& device, std::vector<LeafOrigin> origins);

}  // namespace reprise
