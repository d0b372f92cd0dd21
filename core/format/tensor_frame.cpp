#include "core/format/tensor_frame.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/check.hpp"
#include "core/base/utf8.hpp"
#include "core/format/torch_records.hpp"
#include "core/format/zip/crc32.hpp"

namespace reprise {
namespace {

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

TensorFrame::TensorFrame(DType dtype, const Dims& size, const FoldedExtents& folded)
    : layout_(dtype, size, folded) {
  item_.dtype = dtype;
  item_.size = size;
  item_.strides = contiguous_strides(size);
  item_.folded = folded;
  item_.data_bytes = layout_.data_bytes();
  item_.data_offset = layout_.data_offset();

  fixed_.assign(layout_.tail_bytes(), std::byte{0xff});
  const auto& [crc, id, id_crc] = layout_.places();
  constexpr std::uint32_t kFree = 0;
  crc.put(kFree, fixed_);
  id_crc.put(kFree, fixed_);
  std::ranges::fill(MutableByteSpan(fixed_).subspan(id, kSerializationIdBytes), std::byte{0});
}

std::optional<TensorItem> TensorFrame::match(ByteSpan head, ByteSpan tail) const {
  CHECK(head.size() == head_bytes() && tail.size() == tail_bytes(), head.size(), tail.size());
  if (std::memcmp(head.data(), layout_.head().data(), head.size()) != 0) return std::nullopt;
  if (!same_where_fixed(tail, layout_.blank_tail(), fixed_)) return std::nullopt;
  const ByteSpan id = tail.subspan(layout_.places().id, kSerializationIdBytes);
  if (!is_utf8(as_text(id))) return std::nullopt;  // torch fails on it
  TensorItem item = item_;
  item.crc = load_le<std::uint32_t>(tail.subspan(layout_.places().crc.directory));
  return item;
}

std::uint32_t TensorFrame::id_crc(ByteSpan tail) const {
  return load_le<std::uint32_t>(tail.subspan(layout_.places().id_crc.directory));
}

bool TensorFrame::id_is_whole(ByteSpan tail) const {
  return crc32_of(tail.subspan(layout_.places().id, kSerializationIdBytes)) == id_crc(tail);
}

}  // namespace reprise
