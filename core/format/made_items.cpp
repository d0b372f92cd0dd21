#include "core/format/made_items.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/format/bytes_item.hpp"

namespace reprise {

ByteRange MadeItems::add(Bytes pickle) {
  const ByteRange range{size_, write_bytes_item_of(pickle).size()};
  size_ += range.size;
  items_.push_back({size_, std::move(pickle)});
  return range;
}

void MadeItems::read_at(std::uint64_t offset, MutableByteSpan out) const {
  CHECK((ByteRange{offset, out.size()}.fits(size_)), offset, out.size(), size_);
  auto item = std::ranges::upper_bound(items_, offset, {}, &Item::end);
  while (!out.empty()) {
    const Bytes bytes = write_bytes_item_of(item->pickle);
    const std::uint64_t from = offset - (item->end - bytes.size());
    const std::size_t count =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size() - from, out.size()));
    std::ranges::copy(ByteSpan(bytes).subspan(from, count), out.begin());
    out = out.subspan(count);
    offset += count;
    ++item;
  }
}

}  // namespace reprise
