#include "core/ports/leaf_reach.hpp"

#include "reprise/error.hpp"

namespace reprise {

void require_reach(const Device& device, const StateDict& state) {
  for (const TensorLeaf& leaf : state.tensors) {
    for (const Piece& piece : leaf.pieces) {
      const PieceMemory memory = memory_of(leaf, piece);
      if (memory.kind == MemoryKind::kHost || piece.box.empty() || device.reaches(memory.data))
        continue;
      throw Error(Code::kUnsupported,
                  "the tensor is in memory that device " + device.name() +
                      " can't copy from, such as that of the host or of another device; put it on "
                      "the device or into pinned memory, or declare that it is in host memory "
                      "(TensorPart::memory)",
                  {.key = leaf.key});
    }
  }
}

void require_distinct_elements(const StateDict& state) {
  for (const TensorLeaf& leaf : state.tensors) {
    for (const Piece& piece : leaf.pieces) {
      if (has_elements_apart(piece)) continue;
      throw Error(Code::kUsage,
                  "elements of the tensor may share memory, so nothing can be loaded into it; load "
                  "into a tensor of its own and copy from that (strides " +
                      to_string(piece.strides) + ", extent " + to_string(piece.box.extent) + ")",
                  {.key = leaf.key});
    }
  }
}

}  // namespace reprise
