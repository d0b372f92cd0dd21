#pragma once
// Texts on the wire between ranks of one job: a count of 8 bytes, then each with its length.

#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"

namespace reprise {

inline void put_text(Bytes& wire, std::string_view text) {
  append_le(wire, static_cast<std::uint64_t>(text.size()));
  append(wire, as_bytes(text));
}

/// A part of the wire; shortens it.
inline ByteSpan take_bytes(ByteSpan& wire) {
  const auto size = load_le<std::uint64_t>(wire);
  const ByteSpan bytes = wire.subspan(8, size);
  wire = wire.subspan(8 + size);
  return bytes;
}

inline std::string take_text(ByteSpan& wire) { return std::string(as_text(take_bytes(wire))); }

inline void put_texts(Bytes& wire, const std::vector<std::string>& texts) {
  append_le(wire, static_cast<std::uint64_t>(texts.size()));
  for (const auto& text : texts) put_text(wire, text);
}

inline std::vector<std::string> take_texts(ByteSpan& wire) {
  const auto count = load_le<std::uint64_t>(wire);
  wire = wire.subspan(8);
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < count; ++i) texts.push_back(take_text(wire));
  return texts;
}

}  // namespace reprise
