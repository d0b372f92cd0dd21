#pragma once
// Defines file ranges, and reads and writes little-endian numbers in buffers. All files that this
// program reads or writes are little-endian.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "reprise/types.hpp"

namespace reprise {

/// Half-open range [offset, offset + size) of a file or buffer, in bytes.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;

  friend constexpr bool operator==(ByteRange, ByteRange) = default;
  /// True if the range lies within a file of `file_size` bytes. The computation cannot overflow.
  constexpr bool fits(std::uint64_t file_size) const {
    return offset <= file_size && size <= file_size - offset;
  }
};

static_assert(std::endian::native == std::endian::little, "the formats here are little-endian");

/// Reads a T from the first sizeof(T) bytes of `bytes`; the caller must check the length.
template <class T>
T load_le(ByteSpan bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

template <class T>
void append_le(Bytes& out, T value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), first, first + sizeof(T));
}

inline void append(Bytes& out, ByteSpan bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

inline ByteSpan as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline std::string_view as_text(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline Bytes to_bytes(std::string_view text) {
  const auto span = as_bytes(text);
  return {span.begin(), span.end()};
}

}  // namespace reprise
