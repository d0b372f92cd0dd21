#include "core/engine/region_reader.hpp"

#include <algorithm>

namespace reprise {
namespace {

/// A region that is read once and goes to several targets.
struct Atom {
  std::uint32_t source;
  Box region;
  std::vector<std::uint32_t> targets;
};

/// Cuts regions that overlap into disjoint ones.
std::vector<Atom> atoms_of(std::span<const RegionTarget> targets) {
  std::vector<Atom> atoms;
  for (std::uint32_t t = 0; t < targets.size(); ++t) {
    std::vector<Box> pending = {targets[t].region};
    while (!pending.empty()) {
      const Box box = pending.back();
      pending.pop_back();
      const auto met = std::find_if(atoms.begin(), atoms.end(), [&](const Atom& atom) {
        return atom.source == targets[t].source && intersect(atom.region, box);
      });
      if (met == atoms.end()) {
        atoms.push_back({targets[t].source, box, {t}});
        continue;
      }
      const Atom whole = *met;
      const Box shared = *intersect(whole.region, box);
      met->region = shared;
      met->targets.push_back(t);
      for (const Box& part : subtract(whole.region, shared)) {
        atoms.push_back({whole.source, part, whole.targets});
      }
      for (const Box& part : subtract(box, shared)) pending.push_back(part);
    }
  }
  return atoms;
}

/// The stored elements of a piece of a chunk: as a piece whose `local` and strides count in the
/// item's storage.
Piece in_storage(const StoredTensor& tensor, const TensorItem& item, Piece piece) {
  if (tensor.original_shape.empty()) {
    piece.local = item.storage_offset;
    piece.strides = item.strides;
    return piece;
  }
  const std::int64_t step = item.strides.empty() ? 1 : item.strides[item.strides.size() - 1];
  piece.local = item.storage_offset + piece.local * step;
  for (auto& stride : piece.strides) stride *= step;
  return piece;
}

void swap_bytes(DType dtype, MutableByteSpan bytes) {
  const bool complex =
      dtype == DType::kComplex128 || dtype == DType::kComplex64 || dtype == DType::kComplex32;
  const std::size_t width = complex ? size_of(dtype) / 2 : size_of(dtype);
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + width));
  }
}

std::int64_t span_of(const Dims& strides, const Dims& extents) {
  std::int64_t span = 1;
  for (std::size_t d = 0; d < extents.size(); ++d) span += (extents[d] - 1) * strides[d];
  return span;
}

/// Reads one atom block by block. A block is read in one go if it fits into staging and nearly all
/// of its span is wanted; otherwise it is halved along its slowest dimension.
class AtomReader {
 public:
  struct Target {
    std::byte* data;
    Dims strides;
  };

  AtomReader(ReadFile& file, std::uint64_t storage_offset, const TensorItem& item,
             MutableByteSpan staging, Device& device)
      : file_(file),
        storage_offset_(storage_offset),
        item_(item),
        width_(static_cast<std::int64_t>(size_of(item.dtype))),
        staging_(staging),
        device_(device) {}

  void read(std::int64_t first, const Dims& strides, const Dims& extents,
            std::vector<Target> targets) {
    const std::int64_t span = span_of(strides, extents);
    const bool dense = volume(extents) * 20 >= span * 19;
    if (dense && static_cast<std::uint64_t>(span * width_) <= staging_.size()) {
      return read_block(first, span, strides, extents, targets);
    }
    std::size_t slowest = 0;
    std::int64_t reach = -1;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] > 1 && strides[d] > reach) {
        slowest = d;
        reach = strides[d];
      }
    }
    CHECK(reach >= 0, extents, strides, staging_.size());
    Dims half = extents;
    half[slowest] = extents[slowest] / 2;
    read(first, strides, half, targets);
    for (auto& target : targets) {
      target.data += half[slowest] * target.strides[slowest] * width_;
    }
    first += half[slowest] * strides[slowest];
    half[slowest] = extents[slowest] - half[slowest];
    read(first, strides, half, std::move(targets));
  }

  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  void read_block(std::int64_t first, std::int64_t span, const Dims& strides, const Dims& extents,
                  const std::vector<Target>& targets) {
    const MutableByteSpan block = staging_.first(static_cast<std::size_t>(span * width_));
    file_.read_at(storage_offset_ + static_cast<std::uint64_t>(first * width_), block);
    bytes_read_ += block.size();
    if (item_.byteswap) swap_bytes(item_.dtype, block);
    if (item_.flips.any()) flip_signs(item_.dtype, block, item_.flips);
    copies_.clear();
    for (const auto& target : targets) {
      copies_.push_back({.host = {block.data(), strides},
                         .device = {target.data, target.strides},
                         .extents = extents,
                         .element_bytes = static_cast<std::size_t>(width_)});
    }
    device_.wait(device_.scatter(copies_));
  }

  ReadFile& file_;
  std::uint64_t storage_offset_;
  const TensorItem& item_;
  std::int64_t width_;
  MutableByteSpan staging_;
  Device& device_;
  std::vector<ScatterCopy> copies_;
  std::uint64_t bytes_read_ = 0;
};

/// The part of a target that belongs to `region`, which lies within the target's region.
AtomReader::Target part_of(const RegionTarget& target, const Box& region, DType dtype) {
  const Piece view{target.region, 0, target.target.strides};
  const auto width = static_cast<std::int64_t>(size_of(dtype));
  return {target.target.data + local_offset(view, region.offset) * width, target.target.strides};
}

}  // namespace

std::uint64_t read_regions(Checkpoint& checkpoint, const StoredTensor& tensor,
                           const StoredChunk& chunk, const TensorItem& item,
                           std::span<const RegionTarget> targets, MutableByteSpan staging,
                           Device& device) {
  try {
    const auto pieces = pieces_of(tensor, chunk);
    AtomReader reader(checkpoint.file(chunk.file), chunk.range.offset + item.data_offset, item,
                      staging, device);
    for (const Atom& atom : atoms_of(targets)) {
      const Piece source = in_storage(tensor, item, pieces.at(atom.source));
      CHECK(contains(source.box, atom.region), source.box, atom.region);
      std::vector<AtomReader::Target> goes_to;
      for (const auto t : atom.targets) {
        goes_to.push_back(part_of(targets[t], atom.region, item.dtype));
      }
      reader.read(local_offset(source, atom.region.offset), source.strides, atom.region.extent,
                  std::move(goes_to));
    }
    return reader.bytes_read();
  } catch (const Error& error) {
    throw error.within({.key = tensor.key, .file = checkpoint.display(chunk.file)});
  }
}

}  // namespace reprise
