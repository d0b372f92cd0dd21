#include "core/plan/chunk_index.hpp"

#include "reprise/error.hpp"

namespace reprise {

ChunkIndex::ChunkIndex(const StoredTensor& tensor) {
  const std::size_t ndim = logical_shape(tensor).size();
  pieces_.reserve(tensor.chunks.size());
  for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
    const StoredChunk& chunk = tensor.chunks[c];
    std::uint32_t source = 0;
    const auto add = [&](const Box& box) {
      if (box.ndim() != ndim || box.extent.size() != ndim) {
        throw Error(
            Code::kExtentMismatch,
            "chunk " + to_string(chunk.box.offset) + " has a different number of dimensions",
            {.key = tensor.key});
      }
      if (!box.empty()) pieces_.push_back({static_cast<std::uint32_t>(c), source, box});
      ++source;
    };
    if (tensor.original_shape.empty()) {
      add(chunk.box);
    } else {
      for (const Piece& piece : pieces_of(tensor, chunk)) add(piece.box);
    }
  }
  std::vector<Box> boxes;
  boxes.reserve(pieces_.size());
  for (const StoredPiece& piece : pieces_) boxes.push_back(piece.box);
  index_.emplace(boxes);
}

}  // namespace reprise
