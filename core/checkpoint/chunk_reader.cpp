#include "core/checkpoint/chunk_reader.hpp"

#include <algorithm>
#include <array>

#include "core/base/check.hpp"
#include "core/format/zip/crc32.hpp"

namespace reprise {
namespace {

/// Limit on the number of remembered shapes; few are needed, because shapes repeat from layer to
/// layer.
constexpr std::size_t kFramesMax = 32;
/// After this many consecutive items that do not have the usual frame (TensorFrame), the reader
/// parses all further items.
constexpr int kMissesMax = 8;
/// Number of bytes read at a time. It is small enough for the bytes to be still in the CPU's cache
/// when their checksum is computed. An item with at most this many element bytes may be read in one
/// go; its head and tail are then checked afterwards.
constexpr std::size_t kReadStep = std::size_t{256} << 10U;

/// If there is only one target and it receives the whole chunk in row-major order, returns the
/// target's memory; otherwise null.
std::byte* whole_target(const StoredChunk& chunk, std::span<const RegionTarget> targets) {
  if (targets.size() != 1 || !(targets.front().region == chunk.box)) return nullptr;
  const StridedView& target = targets.front().target;
  std::int64_t step = 1;
  for (std::size_t d = chunk.box.ndim(); d-- > 0;) {
    if (chunk.box.extent[d] != 1 && target.strides[d] != step) return nullptr;
    step *= chunk.box.extent[d];
  }
  return target.data;
}

bool could_hold(ByteRange range, const Dims& extent, DType dtype) {
  const auto elements = checked_volume(extent);
  return elements && *elements > 0 &&
         static_cast<std::uint64_t>(*elements) < range.size / size_of(dtype);
}

}  // namespace

std::uint64_t ChunkReader::read(const StoredTensor& tensor, const StoredChunk& chunk,
                                std::span<const RegionTarget> targets) {
  if (const TensorFrame* frame = frame_of(tensor, chunk)) {
    try {
      ReadFile& file = checkpoint_.file(chunk.file);
      if (chunk.range.fits(file.size())) {
        const auto bytes = read_framed({tensor, chunk, *frame, file}, targets);
        misses_ = bytes ? 0 : misses_ + 1;
        if (bytes) return *bytes;
      }
    } catch (const Error& error) {
      throw error.within({.key = tensor.key, .file = checkpoint_.display(chunk.file)});
    }
  }
  return read_parsed(tensor, chunk, targets);
}

/// Returns the frame (TensorFrame) that items of chunks with this shape usually have; null if this
/// chunk's item must be parsed. An item with a frame is read only once, so its bytes cannot change
/// between check and delivery.
const TensorFrame* ChunkReader::frame_of(const StoredTensor& tensor, const StoredChunk& chunk) {
  if (misses_ >= kMissesMax || chunk.file == kNoFile || !tensor.original_shape.empty() ||
      !could_hold(chunk.range, chunk.box.extent, tensor.dtype)) {
    return nullptr;
  }
  auto found = std::find_if(frames_.begin(), frames_.end(), [&](const TensorFrame& frame) {
    return frame.dtype() == tensor.dtype && frame.size() == chunk.box.extent;
  });
  if (found == frames_.end()) {
    if (frames_.size() == kFramesMax) frames_.pop_back();
    frames_.emplace_front(tensor.dtype, chunk.box.extent);
    found = frames_.begin();
  }
  if (found->length() == chunk.range.size) return &*found;
  ++misses_;
  return nullptr;
}

std::optional<TensorItem> ChunkReader::match(const TensorFrame& frame) {
  return frame.match(head_, tail_);
}

/// Reads an item that should have the given frame. Returns nothing if the item has another frame;
/// in that case the targets may already have been written.
std::optional<std::uint64_t> ChunkReader::read_framed(const Framed& framed,
                                                      std::span<const RegionTarget> targets) {
  const TensorFrame& frame = framed.frame;
  head_.resize(frame.head_bytes());
  tail_.resize(frame.tail_bytes());
  std::byte* const whole =
      ring_.device().host_memory() ? whole_target(framed.chunk, targets) : nullptr;
  const bool together = whole != nullptr && frame.data_bytes() <= kReadStep;
  if (together) {
    const std::array<MutableByteSpan, 3> parts = {head_, {whole, frame.data_bytes()}, tail_};
    framed.file.read_parts(framed.chunk.range.offset, parts);
  } else {
    framed.file.read_at(framed.chunk.range.offset, head_);
    framed.file.read_at(framed.elements_at() + frame.data_bytes(), tail_);
  }
  const auto item = match(frame);
  if (!item) return std::nullopt;
  if (checksums_ == nullptr) {
    if (together) return frame.data_bytes();
    return read_regions(checkpoint_, framed.tensor, framed.chunk, *item, targets, ring_);
  }
  const std::uint32_t crc = together           ? crc32_of({whole, frame.data_bytes()})
                            : whole != nullptr ? read_whole(framed, whole)
                                               : read_checked(framed, targets);
  count(framed, item->crc, crc);
  return frame.data_bytes();
}

/// Reads all elements directly into `out` and returns their checksum.
std::uint32_t ChunkReader::read_whole(const Framed& item, std::byte* out) {
  Crc32 crc;
  for (std::uint64_t done = 0; done < item.frame.data_bytes();) {
    const MutableByteSpan part(out + done, std::min(item.frame.data_bytes() - done, kReadStep));
    item.file.read_at(item.elements_at() + done, part);
    crc.update(part);
    done += part.size();
  }
  return crc.value();
}

/// Reads all elements, delivers the requested ones and returns the checksum of all elements.
std::uint32_t ChunkReader::read_checked(const Framed& item, std::span<const RegionTarget> targets) {
  const auto width = static_cast<std::int64_t>(size_of(item.frame.dtype()));
  const auto room = static_cast<std::int64_t>(ring_.room()) / width;
  const Box& box = item.chunk.box;
  const std::int64_t elements = box.elements();
  const Piece payload = contiguous_piece(box);
  CHECK(room > 0, ring_.room(), width);
  Crc32 crc;
  for (std::int64_t begin = 0; begin < elements; begin += room) {
    const std::int64_t end = std::min(begin + room, elements);
    const MutableByteSpan block = ring_.take(static_cast<std::size_t>((end - begin) * width));
    item.file.read_at(item.elements_at() + static_cast<std::uint64_t>(begin * width), block);
    crc.update(block);
    copies_.clear();
    for (const Box& part : boxes_of_range(box, begin, end)) {
      for (const RegionTarget& wanted : targets) {
        const auto common = intersect(part, wanted.region);
        if (!common) continue;
        const Piece target{wanted.region, 0, wanted.target.strides};
        const std::int64_t from = local_offset(payload, common->offset) - begin;
        const std::int64_t to = local_offset(target, common->offset);
        copies_.push_back({.host = {block.data() + from * width, payload.strides},
                           .device = {wanted.target.data + to * width, target.strides},
                           .extents = common->extent,
                           .element_bytes = static_cast<std::size_t>(width)});
      }
    }
    ring_.scatter(copies_);
  }
  return crc.value();
}

void ChunkReader::count(const Framed& item, std::uint32_t stored, std::uint32_t found) {
  ChecksumTally& tally = *checksums_;
  const std::string file = checkpoint_.display(item.chunk.file);
  const auto place = [&item, &file](std::uint64_t offset) {
    return ErrorPlace{.key = item.tensor.key, .file = file, .offset = offset};
  };
  tally.add_matching(file, TensorFrame::kRecords - 2);
  tally.add(file, {.name = "data/0", .size = item.frame.data_bytes(), .crc = stored},
            stored == found, [&] { return place(item.elements_at()); });
  const std::uint64_t tail = item.elements_at() + item.frame.data_bytes();
  tally.add(file, {.name = ".data/serialization_id", .size = 40, .crc = item.frame.id_crc(tail_)},
            item.frame.id_is_whole(tail_), [&] { return place(tail); });
  tally.require_no_damage();
}

std::uint64_t ChunkReader::read_parsed(const StoredTensor& tensor, const StoredChunk& chunk,
                                       std::span<const RegionTarget> targets) {
  // The checksum is verified before parsing: if a changed byte makes parsing fail, the checksum
  // error gives the cause.
  if (checksums_ != nullptr) {
    const auto slice = checkpoint_.slice(tensor.key, chunk.file, chunk.range);
    checksums_->add(*slice, tensor.key);
    checksums_->require_no_damage();
  }
  const TensorItem item = checkpoint_.tensor_item(tensor, chunk);
  return read_regions(checkpoint_, tensor, chunk, item, targets, ring_);
}

}  // namespace reprise
