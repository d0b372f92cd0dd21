#pragma once
// The bytes of a pickle, taken front to back; every length is checked against what remains.

#include <string_view>

#include "core/base/bytes.hpp"
#include "core/format/pickle_reader.hpp"
#include "reprise/error.hpp"

namespace reprise::pickle {

class Input {
 public:
  Input(ByteSpan bytes, const PickleSource& where);

  bool at_end() const { return at_ == bytes_.size(); }
  std::size_t position() const { return at_; }
  std::size_t remaining() const { return bytes_.size() - at_; }

  /// The next opcode; errors from now on name its position.
  std::byte opcode();

  template <class T>
  T take() {
    return load_le<T>(skip(sizeof(T)));
  }
  /// A big-endian double.
  double take_double();
  /// The next `length` bytes.
  ByteSpan skip(std::uint64_t length);
  /// Text up to a newline, which is taken too; at most `length_max` bytes.
  std::string_view line(std::size_t length_max);

  [[noreturn]] void fail(Code code, std::string message) const;

 private:
  ByteSpan bytes_;
  const PickleSource& where_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
};

/// UTF-8, with surrogates allowed as Python's pickler writes them.
bool is_utf8(ByteSpan text);

}  // namespace reprise::pickle
