#include "core/format/zip/archive_begin.hpp"

#include <algorithm>

#include "core/format/zip/zip_layout.hpp"

namespace reprise {

std::optional<std::uint64_t> archive_begin(ItemSource& source, std::uint64_t end) {
  constexpr std::uint64_t kWide = zip::kWideEndBytes + zip::kWideLocatorBytes;
  if (end < zip::kEndBytes || end > source.size()) return std::nullopt;
  const std::uint64_t size = std::min<std::uint64_t>(end, kWide + zip::kEndBytes);
  const Bytes tail = read_range(source, {end - size, size});
  const ByteSpan last = ByteSpan(tail).last(zip::kEndBytes);
  if (load_le<std::uint32_t>(last) != zip::kEndSignature ||
      load_le<std::uint16_t>(last.subspan(20)) != 0) {
    return std::nullopt;
  }
  std::uint64_t directory_size = load_le<std::uint32_t>(last.subspan(12));
  std::uint64_t directory_offset = load_le<std::uint32_t>(last.subspan(16));
  std::uint64_t directory_end = end - zip::kEndBytes;
  if (size == kWide + zip::kEndBytes &&
      load_le<std::uint32_t>(ByteSpan(tail).subspan(zip::kWideEndBytes)) ==
          zip::kWideLocatorSignature &&
      load_le<std::uint32_t>(tail) == zip::kWideEndSignature) {
    directory_size = load_le<std::uint64_t>(ByteSpan(tail).subspan(40));
    directory_offset = load_le<std::uint64_t>(ByteSpan(tail).subspan(48));
    directory_end = end - size;
  }
  if (directory_size > directory_end || directory_offset > directory_end - directory_size) {
    return std::nullopt;
  }
  return directory_end - directory_size - directory_offset;
}

}  // namespace reprise
