#include "core/plan/layout_reads.hpp"

#include <algorithm>
#include <string>

#include "core/plan/chunk_index.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

/// Adds the reads of one wanted box.
void add_box(const StoredTensor& tensor, const ChunkIndex& index, const Box& box,
             PlaceReads& reads) {
  const std::uint64_t width = size_of(tensor.dtype);
  std::int64_t found = 0;
  std::vector<std::uint32_t> met;
  index.meet(box, [&](const StoredPiece& piece, const Box& common) {
    if (tensor.chunks[piece.chunk].file == kNoFile) return;
    found += common.elements();
    met.push_back(piece.chunk);
  });
  if (found != box.elements()) {
    throw Error(found > box.elements() ? Code::kChunkOverlap : Code::kCoverageGap,
                "the stored chunks do not have each element of " + to_string(box) + " once",
                {.key = tensor.key});
  }
  // A flattened chunk has several pieces, and is read once for all of them.
  std::ranges::sort(met);
  met.erase(std::unique(met.begin(), met.end()), met.end());
  reads.held += static_cast<std::uint64_t>(box.elements()) * width;
  reads.chunks += met.size();
  for (const std::uint32_t at : met) {
    const StoredChunk& chunk = tensor.chunks[at];
    const std::uint64_t bytes = static_cast<std::uint64_t>(chunk.box.elements()) * width;
    reads.read += bytes;
    reads.second = std::max(reads.second, std::min(reads.largest, bytes));
    reads.largest = std::max(reads.largest, bytes);
    reads.of_file[chunk.file] += chunk.range.size;
  }
}

}  // namespace

std::vector<PlaceReads> layout_reads(const Catalog& catalog, const LayoutBoxes& boxes,
                                     std::span<const LayoutPlace> places) {
  std::vector<PlaceReads> reads(places.size());
  for (std::uint32_t t = 0; t < catalog.tensors.size(); ++t) {
    const StoredTensor& tensor = catalog.tensors[t];
    const ChunkIndex index(tensor);
    for (std::size_t p = 0; p < places.size(); ++p) {
      for (const Box& box : boxes.of(t, places[p])) add_box(tensor, index, box, reads[p]);
    }
  }
  return reads;
}

double read_amplification(std::span<const PlaceReads> reads, std::span<const std::uint64_t> ranks) {
  double held = 0;
  double read = 0;
  for (std::size_t p = 0; p < reads.size(); ++p) {
    held += static_cast<double>(reads[p].held) * static_cast<double>(ranks[p]);
    read += static_cast<double>(reads[p].read) * static_cast<double>(ranks[p]);
  }
  return held == 0 ? 0 : read / held;
}

}  // namespace reprise
