#pragma once
// What ranks of one job send each other: numbers, texts (a count of 8 bytes, then the bytes) and
// lists of texts. No length is believed that exceeds what is there.

#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"

namespace reprise {

inline void put_text(Bytes& wire, std::string_view text) {
  append_le(wire, static_cast<std::uint64_t>(text.size()));
  append(wire, as_bytes(text));
}

inline void put_texts(Bytes& wire, const std::vector<std::string>& texts) {
  append_le(wire, static_cast<std::uint64_t>(texts.size()));
  for (const auto& text : texts) put_text(wire, text);
}

/// Reads what another rank sent from its beginning to its end. COLLECTIVE_MISMATCH where that holds
/// less or more than it says; `what` names it in the message and is borrowed, as the bytes are.
class PeerWire {
 public:
  PeerWire(ByteSpan bytes, std::string_view what) : rest_(bytes), what_(what) {}

  bool empty() const { return rest_.empty(); }
  template <class T>
  T number() {
    return load_le<T>(bytes(sizeof(T)));
  }
  ByteSpan bytes(std::uint64_t size);
  /// Returns a number of entries that take at least `each` bytes.
  std::uint64_t count(std::uint64_t each);
  /// Returns bytes that stand behind their count.
  ByteSpan part() { return bytes(number<std::uint64_t>()); }
  std::string text() { return std::string(as_text(part())); }
  std::vector<std::string> texts();
  /// Refuses bytes that are left.
  void end() const;
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  ByteSpan rest_;
  std::string_view what_;
};

}  // namespace reprise
