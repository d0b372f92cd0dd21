#include "core/ports/leaf_reach.hpp"

#include <algorithm>

#include "reprise/error.hpp"

namespace reprise {

void require_reach(const Device& device, const StateDict& state) {
  for (const TensorLeaf& leaf : state.tensors) {
    const bool holds_elements = std::any_of(leaf.pieces.begin(), leaf.pieces.end(),
                                            [](const Piece& piece) { return !piece.box.empty(); });
    if (!holds_elements || device.reaches(leaf.data)) continue;
    throw Error(Code::kUnsupported,
                "the tensor is in host memory that device " + device.name() +
                    " can't copy; put it on the device or into pinned memory",
                {.key = leaf.key});
  }
}

}  // namespace reprise
