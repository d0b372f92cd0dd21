#pragma once
// A rank's own leaves as the source of what it writes.

#include <memory>
#include <vector>

#include "core/engine/image_writer.hpp"
#include "core/geometry/piece.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// Where the elements of an item stand: in one piece of one leaf. Empty for an object.
struct LeafOrigin {
  const TensorLeaf* leaf = nullptr;
  const Piece* piece = nullptr;
};

/// Gathers elements from where they stand straight into what is written; nothing is held between.
/// Item i is the one of `origins[i]`; the leaves live until the last fill().
std::unique_ptr<ContentSource> leaf_source(Device& device, std::vector<LeafOrigin> origins);

}  // namespace reprise
