#include "core/plan/chunk_index.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace reprise {
namespace {

/// The dimension with most distinct beginnings, as far as counting neighbours in storage order
/// tells.
std::size_t busiest_dim(const std::vector<StoredPiece>& pieces, std::size_t rank) {
  std::size_t best = 0;
  std::size_t most = 0;
  std::vector<std::int64_t> begins;
  for (std::size_t d = 0; d < rank; ++d) {
    begins.clear();
    for (const StoredPiece& piece : pieces) begins.push_back(piece.box.offset[d]);
    std::sort(begins.begin(), begins.end());
    const auto distinct =
        static_cast<std::size_t>(std::unique(begins.begin(), begins.end()) - begins.begin());
    if (distinct > most) {
      most = distinct;
      best = d;
    }
  }
  return best;
}

}  // namespace

ChunkIndex::ChunkIndex(const StoredTensor& tensor) {
  const std::size_t rank = logical_shape(tensor).size();
  pieces_.reserve(tensor.chunks.size());
  for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
    const StoredChunk& chunk = tensor.chunks[c];
    std::uint32_t source = 0;
    const auto add = [&](const Box& box) {
      if (box.rank() != rank || box.extent.size() != rank) {
        throw Error(Code::kExtentMismatch,
                    "chunk " + to_string(chunk.box.offset) + " has another number of dimensions",
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
  constexpr std::size_t kScanned = 8;  // so few are sooner looked through than sorted
  if (rank == 0 || pieces_.size() <= kScanned) return;
  dim_ = busiest_dim(pieces_, rank);
  std::stable_sort(pieces_.begin(), pieces_.end(), [this](const auto& a, const auto& b) {
    return a.box.offset[dim_] < b.box.offset[dim_];
  });
  std::int64_t reach = 0;
  for (const StoredPiece& piece : pieces_) {
    reach = std::max(reach, piece.box.interval(dim_).end);
    reach_.push_back(reach);
  }
}

std::size_t ChunkIndex::first_reaching(const Box& region) const {
  if (reach_.empty()) return 0;
  const auto first = std::upper_bound(reach_.begin(), reach_.end(), region.offset[dim_]);
  return static_cast<std::size_t>(first - reach_.begin());
}

bool ChunkIndex::begins_after(std::size_t piece, const Box& region) const {
  return !reach_.empty() && pieces_[piece].box.offset[dim_] >= region.interval(dim_).end;
}

}  // namespace reprise
