#include "core/engine/tensor_reader.hpp"

#include <algorithm>

#include "core/engine/region_reader.hpp"
#include "core/plan/cover.hpp"

namespace reprise {
namespace {

/// The view of `region`'s elements in the local buffer that holds `piece`.
StridedView view_of(const Piece& piece, const Box& region, std::byte* local, std::size_t width) {
  std::int64_t element = piece.local;
  for (std::size_t d = 0; d < region.rank(); ++d) {
    element += (region.offset[d] - piece.box.offset[d]) * piece.strides[d];
  }
  return {local + static_cast<std::size_t>(element) * width, piece.strides};
}

}  // namespace

TensorReader::TensorReader(const ReaderResources& resources, const StoredTensor& tensor)
    : resources_(resources), tensor_(tensor), items_(tensor.chunks.size()) {
  std::vector<Box> boxes;
  for (std::uint32_t c = 0; c < tensor.chunks.size(); ++c) {
    const auto pieces = pieces_of(tensor, tensor.chunks[c]);
    for (std::uint32_t p = 0; p < pieces.size(); ++p) {
      boxes.push_back(pieces[p].box);
      if (!pieces[p].box.empty()) sources_.push_back({c, p, pieces[p].box});
    }
  }
  if (const auto defect = prove_cover(logical_shape(tensor), boxes)) {
    const Checkpoint& checkpoint = resources.checkpoint;
    throw Error(
        defect->code, defect->message,
        {.key = tensor.key, .file = checkpoint.store().display(checkpoint.location().directory)});
  }
}

const TensorItem& TensorReader::item(std::uint32_t chunk) {
  auto& found = items_[chunk];
  if (found) return *found;
  const StoredChunk& stored = tensor_.chunks[chunk];
  found = resources_.checkpoint.tensor_item(tensor_, stored);
  if (resources_.checksums != nullptr) {
    const auto slice = resources_.checkpoint.slice(tensor_.key, stored.file, stored.range);
    resources_.checksums->add(*slice, tensor_.key);
  }
  return *found;
}

void TensorReader::read_chunk(std::span<const Source> sources, std::span<const Piece> wanted,
                              std::byte* local) {
  const std::size_t width = size_of(tensor_.dtype);
  std::vector<RegionTarget> targets;
  for (const Source& source : sources) {
    for (const Piece& piece : wanted) {
      const auto region = intersect(source.box, piece.box);
      if (!region) continue;
      targets.push_back({source.piece, *region, view_of(piece, *region, local, width)});
    }
  }
  if (targets.empty()) return;
  const std::uint32_t chunk = sources.front().chunk;
  read_regions(resources_.checkpoint, tensor_, tensor_.chunks[chunk], item(chunk), targets,
               resources_.staging, resources_.device);
}

void TensorReader::read(std::span<const Piece> wanted, std::byte* local) {
  const std::span<const Source> all(sources_);
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin + 1;
    while (end < all.size() && all[end].chunk == all[begin].chunk) ++end;
    read_chunk(all.subspan(begin, end - begin), wanted, local);
    begin = end;
  }
}

void TensorReader::read(const Box& box, std::byte* local) {
  const Piece piece = contiguous_piece(box);
  read(std::span(&piece, 1), local);
}

}  // namespace reprise
