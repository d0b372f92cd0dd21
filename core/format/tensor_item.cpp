#include "core/format/tensor_item.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>

#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "core/format/pickle/pickle_reader.hpp"
#include "core/format/pickle/pickle_writer.hpp"
#include "core/format/torch_records.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/crc32.hpp"

namespace reprise {

namespace {

// Upper limit on the size of a tensor's data.pkl, which usually has about 200 bytes.
constexpr std::uint64_t kTensorPickleMax = std::uint64_t{64} * 1024;

// True if two different indices may refer to one element. Visits the dimensions in ascending order
// of their strides. `reach` is the largest offset that the dimensions visited so far can produce.
// If the stride of each further dimension is larger than `reach`, no two indices refer to one
// element. The result is therefore false for every permuted or sliced tensor, and true for every
// expanded one. `reach` cannot overflow, because the view fits its storage.
bool elements_fall_together(const Dims& size, const Dims& strides) {
  if (std::ranges::find(size, 0) != size.end()) return false;
  std::array<std::size_t, kMaxNdim> order{};
  std::size_t count = 0;
  for (std::size_t d = 0; d < size.size(); ++d) {
    if (size[d] <= 1) continue;
    std::size_t at = count++;
    for (; at > 0 && strides[order[at - 1]] > strides[d]; --at) order[at] = order[at - 1];
    order[at] = d;
  }
  std::int64_t reach = 0;
  for (const std::size_t d : std::span(order.data(), count)) {
    if (strides[d] <= reach) return true;
    reach += (size[d] - 1) * strides[d];
  }
  return false;
}

void check_description(const TensorDescription& tensor, const Record& storage,
                       const ItemSource& source, std::uint64_t pickle_offset) {
  if (too_large(size_of(tensor.dtype), tensor.shape)) {
    source.fail(Code::kLimit, "a tensor of shape " + to_string(tensor.shape), pickle_offset);
  }
  // torch stores such a view if its storage has as many elements as the view, and clones others.
  const auto element_bytes =
      static_cast<std::uint64_t>(volume(tensor.shape)) * size_of(tensor.dtype);
  if (element_bytes > storage.size && elements_fall_together(tensor.shape, tensor.strides)) {
    source.fail(Code::kUnsupported,
                "shape " + to_string(tensor.shape) + " with strides " + to_string(tensor.strides) +
                    " has more elements than are stored, which is not supported: clone the tensor "
                    "before saving",
                pickle_offset);
  }
  if (storage.size < static_cast<std::uint64_t>(tensor.storage_bytes())) {
    source.fail(Code::kExtentMismatch,
                "record '" + storage.name + "' has " + std::to_string(storage.size) +
                    " bytes, but the tensor needs " + std::to_string(tensor.storage_bytes()),
                storage.header_offset);
  }
}

}  // namespace

bool too_large(std::size_t element_bytes, const Dims& size) {
  constexpr std::int64_t kBytesMax = std::numeric_limits<std::int64_t>::max() / 2;
  std::int64_t room = kBytesMax / static_cast<std::int64_t>(element_bytes);
  for (const std::int64_t extent : size) room /= std::max<std::int64_t>(extent, 1);
  return room == 0;
}

bool TensorItem::contiguous() const {
  if (storage_offset != 0 || element_bytes() == 0) return storage_offset == 0;
  std::int64_t step = 1;
  for (std::size_t d = size.size(); d-- > 0;) {
    if (size[d] > 1 && strides[d] != step) return false;
    step *= size[d];
  }
  return true;
}

std::uint64_t TensorItem::element_bytes() const {
  return static_cast<std::uint64_t>(volume(size)) * size_of(dtype);
}

TensorItem read_tensor_item(ItemSource& source) {
  Archive archive(source);
  return read_tensor_item(archive);
}

TensorItem read_tensor_item(Archive& archive) {
  ItemSource& source = archive.source();
  check_torch_records(archive);
  const Record& pickle_record = archive.at("data.pkl");
  const Bytes pickle = archive.read(pickle_record, kTensorPickleMax);
  const std::uint64_t pickle_offset = archive.content_range(pickle_record).offset;
  const TensorDescription tensor = decode_tensor(pickle, pickle_at(source, pickle_offset));
  const Record& storage = archive.at("data/" + tensor.storage_key);
  check_description(tensor, storage, source, pickle_offset);
  const ByteRange data = archive.content_range(storage);
  const ByteOrder order = byte_order_of(archive);
  return {.dtype = tensor.dtype,
          .size = tensor.shape,
          .strides = tensor.strides,
          .folded = tensor.folded,
          .storage_offset = tensor.storage_offset,
          .overlaps = elements_fall_together(tensor.shape, tensor.strides),
          .data_offset = data.offset,
          .data_bytes = data.size,
          .crc = storage.crc,
          .byteswap = order == ByteOrder::kBig,
          .flips = tensor.flips};
}

TensorItemLayout::TensorItemLayout(DType dtype, const Dims& size, const FoldedExtents& folded) {
  CHECK(!too_large(size_of(dtype), size), size);
  data_bytes_ = static_cast<std::uint64_t>(volume(size)) * size_of(dtype);
  const Bytes pickle = encode_tensor_pickle(dtype, size, folded);
  pickle_hash_ = hash_of(ByteSpan(pickle));
  ArchiveWriter out("archive");
  add_leading_records(out, pickle);
  out.begin("data/0", data_bytes_);
  head_ = out.take();
  const std::uint64_t begin = head_.size() + data_bytes_;
  const std::size_t elements = out.end(0);
  begin_serialization_id(out);
  places_.id = out.position() - begin;
  tail_ = out.take();
  tail_.resize(tail_.size() + kSerializationIdBytes);
  const std::size_t id = out.end(0);
  out.finish();
  append(tail_, out.take());
  places_.crc = out.checksum_places(elements).relative_to(begin);
  places_.id_crc = out.checksum_places(id).relative_to(begin);
}

void TensorItemLayout::write_tail(std::uint32_t crc, MutableByteSpan out) const {
  CHECK(out.size() == tail_.size(), out.size(), tail_.size());
  std::ranges::copy(tail_, out.begin());
  places_.crc.put(crc, out);
  const MutableByteSpan id = out.subspan(places_.id, kSerializationIdBytes);
  write_serialization_id(pickle_hash_, crc, id);
  places_.id_crc.put(crc32_of(id), out);
}

Bytes TensorItemLayout::tail(std::uint32_t crc) const {
  Bytes out(tail_.size());
  write_tail(crc, out);
  return out;
}

}  // namespace reprise
