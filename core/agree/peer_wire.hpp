#pragma once
// Encodes and decodes messages between the ranks of a job. A message consists of numbers, texts (an
// 8-byte count, then the bytes) and lists of texts. The reader refuses a length that exceeds the
// message.

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

/// Reads another rank's message from start to end. Throws COLLECTIVE_MISMATCH if the message is
/// shorter or longer than its counts say. Error messages contain `what`, the name of the message.
/// The name and the bytes must outlive the reader.
class PeerWire {
 public:
  PeerWire(ByteSpan bytes, std::string_view what) : rest_(bytes), what_(what) {}

  bool empty() const { return rest_.empty(); }
  template <class T>
  T number() {
    return load_le<T>(bytes(sizeof(T)));
  }
  ByteSpan bytes(std::uint64_t size);
  /// Reads the number of entries that follow. Throws if that many entries of at least `each` bytes
  /// cannot fit in the rest of the message.
  std::uint64_t count(std::uint64_t each);
  /// Reads a count, then that many bytes, and returns the bytes.
  ByteSpan part() { return bytes(number<std::uint64_t>()); }
  std::string text() { return std::string(as_text(part())); }
  std::vector<std::string> texts();
  /// Throws if the message has bytes that were not read.
  void end() const;
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  ByteSpan rest_;
  std::string_view what_;
};

}  // namespace reprise
