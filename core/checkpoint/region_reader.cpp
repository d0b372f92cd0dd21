#include "core/checkpoint/region_reader.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "core/base/check.hpp"

namespace reprise {
namespace {

/// A region that is read once and copied to several targets.
struct Atom {
  std::uint32_t source;
  Box region;
  std::vector<std::uint32_t> targets;
};

/// Splits overlapping regions into disjoint ones.
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

/// Converts a piece of a chunk to positions in the item's storage. In the result, `local` and the
/// strides are counted in elements of that storage.
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

/// Runs of at least this many bytes are read straight into their target. Shorter runs may be
/// adjacent in the file. It is then faster to read one block and copy the runs out of it than to
/// list them in one request.
constexpr std::int64_t kDirectRunMin = std::int64_t{32} << 10U;
/// Maximum number of runs per request.
constexpr std::size_t kPartsMax = 16;
/// Largest block that is read for the sake of short gaps. It stays in a core's cache until the runs
/// have been copied out of it.
constexpr std::int64_t kGapBlockMax = std::int64_t{1} << 20U;

/// Dimensions with more than one element, sorted by stride in the file, smallest first.
struct Order {
  std::array<std::size_t, kMaxNdim> dims{};
  std::size_t size = 0;

  Order(const Dims& strides, const Dims& extents) {
    for (std::size_t d = extents.size(); d-- > 0;) {
      if (extents[d] == 1) continue;
      std::size_t at = size++;
      for (; at > 0 && strides[dims[at - 1]] > strides[d]; --at) dims[at] = dims[at - 1];
      dims[at] = d;
    }
  }
};

/// A part of a region that one read covers.
struct Block {
  Dims extents;
  std::int64_t elements = 1;  ///< wanted elements, and those in gaps shorter than a call is worth
  std::int64_t span = 1;      ///< all elements from the first to the last wanted one
};

/// Calls visit(first index, extents) for each part of the region, in file order.
template <class Visit>
void each_block(const Dims& extents, const Dims& block, const Order& order, const Visit& visit) {
  Dims at = Dims::filled(extents.size(), 0);
  Dims part = block;
  for (;;) {
    for (std::size_t i = 0; i < order.size; ++i) {
      const std::size_t d = order.dims[i];
      part[d] = std::min(block[d], extents[d] - at[d]);
    }
    visit(at, part);
    std::size_t i = 0;
    for (; i < order.size; ++i) {
      const std::size_t d = order.dims[i];
      if ((at[d] += block[d]) < extents[d]) break;
      at[d] = 0;
    }
    if (i == order.size) return;
  }
}

std::int64_t offset_of(const Dims& at, const Dims& strides) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
  return offset;
}

/// Returns the longest run that has no gaps, neither in the file nor in the target.
Block direct_run(const Dims& strides, const Dims& target, const Dims& extents, const Order& order) {
  Block run{.extents = Dims::filled(extents.size(), 1)};
  for (std::size_t i = 0; i < order.size; ++i) {
    const std::size_t d = order.dims[i];
    if (strides[d] != run.elements || target[d] != run.elements) break;
    run.extents[d] = extents[d];
    run.elements *= extents[d];
  }
  run.span = run.elements;
  return run;
}

struct Target {
  std::byte* data;
  Dims strides;
};

/// Serves the parts of one item, which may arrive after all of them have been asked for.
struct Delivery {
  const Checkpoint& checkpoint;
  const StoredTensor& tensor;
  const StoredChunk& chunk;
  std::shared_ptr<ReadFile> file;
  DType dtype;
  bool byteswap;
  SignFlips flips;
  StagingRing& ring;
  ScatteredCrc32* seen;
  FilledCrc32* filled;
  std::vector<ScatterCopy> copies = {};

  std::int64_t width() const { return static_cast<std::int64_t>(size_of(dtype)); }
  template <class Work>
  void here(const Work& work) const {
    in_place(checkpoint, tensor, chunk, work);
  }
};

/// Part of a region, in elements of the item's storage.
struct Wanted {
  std::int64_t first;
  Dims strides;
  Dims at;
  Dims extents;
};

/// Passes the wanted elements of the block to `seen`, run by run.
void see(const Wanted& wanted, ByteSpan block, std::int64_t width, ScatteredCrc32& seen) {
  const Order order(wanted.strides, wanted.extents);
  const Block run = direct_run(wanted.strides, wanted.strides, wanted.extents, order);
  const auto bytes = static_cast<std::size_t>(run.elements * width);
  each_block(wanted.extents, run.extents, order, [&](const Dims& at, const Dims&) {
    const std::int64_t element = offset_of(at, wanted.strides);
    seen.add(static_cast<std::uint64_t>((wanted.first + element) * width),
             block.subspan(static_cast<std::size_t>(element * width), bytes));
  });
}

void deliver(Delivery& to, const Wanted& wanted, const std::vector<Target>& targets,
             MutableByteSpan block) {
  const std::int64_t width = to.width();
  if (to.seen != nullptr) see(wanted, block, width, *to.seen);
  if (to.byteswap) swap_bytes(to.dtype, block);
  if (to.flips.any()) flip_signs(to.dtype, block, to.flips);
  to.copies.clear();
  for (const auto& target : targets) {
    to.copies.push_back(
        {.host = {block.data(), wanted.strides},
         .device = {target.data + offset_of(wanted.at, target.strides) * width, target.strides},
         .extents = wanted.extents,
         .element_bytes = static_cast<std::size_t>(width)});
  }
  to.ring.scatter(to.copies);
}

/// Reads the regions of one item in order.
class AtomReader {
 public:
  AtomReader(std::shared_ptr<Delivery> delivery, std::uint64_t storage_offset)
      : delivery_(std::move(delivery)),
        file_(*delivery_->file),
        storage_offset_(storage_offset),
        width_(delivery_->width()),
        ring_(delivery_->ring),
        seen_(delivery_->seen),
        direct_(ring_.device().host_memory() && !delivery_->byteswap && !delivery_->flips.any()) {}

  /// `first` and `strides` are counted in elements of the item's storage.
  void read(std::int64_t first, const Dims& strides, const Dims& extents,
            std::vector<Target> targets) {
    const Order order(strides, extents);
    const Block block = staged_block(strides, extents, order);
    if (direct_ && targets.size() == 1) {
      const Block run = direct_run(strides, targets.front().strides, extents, order);
      if (run.elements * width_ >= kDirectRunMin || run.elements >= block.elements) {
        return read_directly(first, strides, extents, order, run, targets.front());
      }
    }
    const auto shared = std::make_shared<const std::vector<Target>>(std::move(targets));
    each_block(extents, block.extents, order, [&](const Dims& at, const Dims& part) {
      read_staged({first + offset_of(at, strides), strides, at, part}, shared);
    });
  }

  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  /// Returns the largest block that fits in staging and in which each gap is shorter than a call is
  /// worth, or at most one element is unwanted for every twenty wanted ones.
  Block staged_block(const Dims& strides, const Dims& extents, const Order& order) const {
    const auto room = static_cast<std::int64_t>(ring_.room()) / width_;
    CHECK(room > 0, ring_.room(), width_);
    Block block{.extents = Dims::filled(extents.size(), 1)};
    for (std::size_t i = 0; i < order.size; ++i) {
      const std::size_t d = order.dims[i];
      const std::int64_t gap = (strides[d] - block.span) * width_;
      // Along an expanded dimension, all elements are the same ones.
      const auto steps_in = [&](std::int64_t most) {
        return strides[d] == 0
                   ? extents[d]
                   : std::clamp<std::int64_t>((most - block.span) / strides[d] + 1, 1, extents[d]);
      };
      // Each further step along dimension d lengthens the span by strides[d] elements, of which
      // block.elements are wanted. At most a twentieth as many elements as are wanted should be
      // unwanted; `loss` is 20 times the number of unwanted elements beyond this limit.
      const std::int64_t loss = 20 * strides[d] - 21 * block.elements;
      std::int64_t count = steps_in(room);
      if (loss > 0) count = std::min(count, 20 * (strides[d] - block.span) / loss);
      const std::int64_t with_gaps = gap > 0 && gap_is_cheaper_than_call(gap)
                                         ? steps_in(std::min(room, kGapBlockMax / width_))
                                         : 0;
      const bool gaps = with_gaps > count;
      count = std::max(count, with_gaps);
      const std::int64_t further = (count - 1) * strides[d];
      block.extents[d] = count;
      block.span += further;
      block.elements = gaps ? block.elements + further : block.elements * count;
      if (count < extents[d]) break;
    }
    return block;
  }

  void read_directly(std::int64_t first, const Dims& strides, const Dims& extents,
                     const Order& order, const Block& run, const Target& target) {
    const auto bytes = static_cast<std::size_t>(run.elements * width_);
    std::array<MutableByteSpan, kPartsMax> parts;
    std::size_t count = 0;
    std::uint64_t begin = 0;
    const auto flush = [&] {
      file_.read_parts(begin, {parts.data(), count});
      bytes_read_ += count * bytes;
      for (std::size_t i = 0; i < count && seen_ != nullptr; ++i) {
        const std::uint32_t sum = seen_->add(begin - storage_offset_ + i * bytes, parts[i]);
        if (delivery_->filled != nullptr) delivery_->filled->add(parts[i], sum);
      }
      count = 0;
    };
    each_block(extents, run.extents, order, [&](const Dims& at, const Dims&) {
      const std::uint64_t place =
          storage_offset_ + static_cast<std::uint64_t>((first + offset_of(at, strides)) * width_);
      if (count == kPartsMax || (count > 0 && place != begin + count * bytes)) flush();
      if (count == 0) begin = place;
      parts[count++] = {target.data + offset_of(at, target.strides) * width_, bytes};
    });
    flush();
  }

  void read_staged(const Wanted& wanted,
                   const std::shared_ptr<const std::vector<Target>>& targets) {
    std::int64_t span = 1;
    for (std::size_t d = 0; d < wanted.extents.size(); ++d) {
      span += (wanted.extents[d] - 1) * wanted.strides[d];
    }
    const auto bytes = static_cast<std::size_t>(span * width_);
    const std::uint64_t offset =
        storage_offset_ + static_cast<std::uint64_t>(wanted.first * width_);
    bytes_read_ += bytes;
    ring_.read(
        bytes,
        [delivery = delivery_, offset](MutableByteSpan block) {
          delivery->here([&] { delivery->file->read_at(offset, block); });
        },
        [delivery = delivery_, wanted, targets](MutableByteSpan block) {
          delivery->here([&] { deliver(*delivery, wanted, *targets, block); });
        });
  }

  std::shared_ptr<Delivery> delivery_;
  ReadFile& file_;
  std::uint64_t storage_offset_;
  std::int64_t width_;
  StagingRing& ring_;
  ScatteredCrc32* seen_;
  bool direct_;
  std::uint64_t bytes_read_ = 0;
};

/// Returns the part of a target that is in `region`, which must be inside the target's region.
Target part_of(const RegionTarget& target, const Box& region, DType dtype) {
  const Piece view{target.region, 0, target.target.strides};
  const auto width = static_cast<std::int64_t>(size_of(dtype));
  return {target.target.data + local_offset(view, region.offset) * width, target.target.strides};
}

}  // namespace

std::uint64_t read_regions(Checkpoint& checkpoint, const StoredTensor& tensor,
                           const StoredChunk& chunk, const TensorItem& item,
                           std::span<const RegionTarget> targets, StagingRing& ring,
                           ScatteredCrc32* seen, FilledCrc32* filled) {
  return in_place(checkpoint, tensor, chunk, [&] {
    const auto pieces = pieces_of(tensor, chunk);
    const auto delivery = std::make_shared<Delivery>(
        Delivery{checkpoint, tensor, chunk, checkpoint.shared_file(chunk.file), item.dtype,
                 item.byteswap, item.flips, ring, seen, filled});
    AtomReader reader(delivery, chunk.range.offset + item.data_offset);
    for (const Atom& atom : atoms_of(targets)) {
      const Piece source = in_storage(tensor, item, pieces.at(atom.source));
      CHECK(contains(source.box, atom.region), source.box, atom.region);
      std::vector<Target> goes_to;
      for (const auto t : atom.targets) {
        goes_to.push_back(part_of(targets[t], atom.region, item.dtype));
      }
      reader.read(local_offset(source, atom.region.offset), source.strides, atom.region.extent,
                  std::move(goes_to));
    }
    return reader.bytes_read();
  });
}

std::uint64_t read_regions(Checkpoint& checkpoint, const StoredTensor& tensor,
                           const StoredChunk& chunk, const TensorItem& item,
                           std::span<const RegionTarget> targets, MutableByteSpan staging,
                           Device& device, ScatteredCrc32* seen, FilledCrc32* filled) {
  StagingRing ring(staging, staging.size(), device);
  const auto bytes = read_regions(checkpoint, tensor, chunk, item, targets, ring, seen, filled);
  ring.drain();
  return bytes;
}

}  // namespace reprise
