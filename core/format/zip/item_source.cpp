#include "core/format/zip/item_source.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace reprise {

ErrorPlace ItemSource::place_at(std::uint64_t offset) const {
  ErrorPlace place = place_;
  place.offset = place_.offset.value_or(0) + offset;
  return place;
}

void ItemSource::fail(Code code, std::string message, std::uint64_t offset) const {
  throw Error(code, std::move(message), place_at(offset));
}

void SpanSource::read_at(std::uint64_t offset, MutableByteSpan out) {
  CHECK((ByteRange{offset, out.size()}.fits(bytes_.size())), offset, out.size());
  std::ranges::copy(bytes_.subspan(offset, out.size()), out.begin());
}

Bytes read_range(ItemSource& source, ByteRange range) {
  if (!range.fits(source.size())) {
    source.fail(Code::kExtentMismatch,
                "needs " + std::to_string(range.size) + " bytes here, but the item ends after " +
                    std::to_string(source.size()) + " bytes",
                range.offset);
  }
  Bytes bytes(range.size);
  source.read_at(range.offset, bytes);
  return bytes;
}

}  // namespace reprise
