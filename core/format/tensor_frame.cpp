#include "core/format/tensor_frame.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/check.hpp"
#include "core/format/crc32.hpp"
#include "core/format/pickle_writer.hpp"
#include "core/format/torch_records.hpp"

namespace reprise {
namespace {

/// What follows the elements, with `free` in place of each byte that is not the same in all items.
Bytes tail_with(ArchiveWriter out, std::byte free) {
  const std::uint32_t crc = free == std::byte{0} ? 0 : 0xffffffff;
  out.end(crc);
  begin_serialization_id(out);
  Bytes tail = out.take();
  tail.insert(tail.end(), kSerializationIdBytes, free);
  out.end(crc);
  out.finish();
  append(tail, out.take());
  return tail;
}

/// Where runs of bytes that are not fixed begin, in order.
std::vector<std::size_t> runs_of(const Bytes& fixed) {
  std::vector<std::size_t> begins;
  for (std::size_t at = 0; at < fixed.size(); ++at) {
    if (fixed[at] != std::byte{0}) continue;
    if (at == 0 || fixed[at - 1] != std::byte{0}) begins.push_back(at);
  }
  return begins;
}

bool same_where_fixed(ByteSpan bytes, const Bytes& wanted, const Bytes& fixed) {
  std::uint64_t different = 0;
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    different |= (load_le<std::uint64_t>(bytes.subspan(at)) ^
                  load_le<std::uint64_t>(ByteSpan(wanted).subspan(at))) &
                 load_le<std::uint64_t>(ByteSpan(fixed).subspan(at));
  }
  for (; at < bytes.size(); ++at) {
    different |= std::to_integer<std::uint64_t>((bytes[at] ^ wanted[at]) & fixed[at]);
  }
  return different == 0;
}

}  // namespace

TensorFrame::TensorFrame(DType dtype, const Dims& size) {
  ArchiveWriter out("archive");
  add_leading_records(out, encode_tensor_pickle(dtype, size));
  item_.dtype = dtype;
  item_.size = size;
  item_.strides = contiguous_strides(size);
  item_.data_bytes = static_cast<std::uint64_t>(volume(size)) * size_of(dtype);
  CHECK(item_.data_bytes > 0, size);
  out.begin("data/0", item_.data_bytes);
  head_ = out.take();
  item_.data_offset = head_.size();

  tail_ = tail_with(out, std::byte{0});
  const Bytes other = tail_with(out, std::byte{0xff});
  fixed_.resize(tail_.size());
  std::ranges::transform(tail_, other, fixed_.begin(), [](std::byte a, std::byte b) {
    return a == b ? std::byte{0xff} : std::byte{0};
  });
  // Checksum of the elements, the id, its checksum; both checksums again in the directory.
  const auto runs = runs_of(fixed_);
  CHECK(runs.size() == 5, runs.size());
  id_at_ = runs[1];
  crc_at_ = runs[3];
  id_crc_at_ = runs[4];
  length_ = head_.size() + item_.data_bytes + tail_.size();
}

std::optional<TensorItem> TensorFrame::match(ByteSpan head, ByteSpan tail) const {
  CHECK(head.size() == head_.size() && tail.size() == tail_.size(), head.size(), tail.size());
  if (std::memcmp(head.data(), head_.data(), head.size()) != 0) return std::nullopt;
  if (!same_where_fixed(tail, tail_, fixed_)) return std::nullopt;
  TensorItem item = item_;
  item.crc = load_le<std::uint32_t>(tail.subspan(crc_at_));
  return item;
}

std::uint32_t TensorFrame::id_crc(ByteSpan tail) const {
  return load_le<std::uint32_t>(tail.subspan(id_crc_at_));
}

bool TensorFrame::id_is_whole(ByteSpan tail) const {
  return crc32_of(tail.subspan(id_at_, kSerializationIdBytes)) == id_crc(tail);
}

}  // namespace reprise
