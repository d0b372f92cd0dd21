#pragma once
// Reads a pickle's bytes from front to back. Checks every length against the remaining input.

#include <string_view>

#include "core/base/bytes.hpp"
#include "core/format/pickle/pickle_reader.hpp"
#include "reprise/error.hpp"

namespace reprise::pickle {

class Input {
 public:
  Input(ByteSpan bytes, const PickleSource& where);

  bool at_end() const { return at_ == bytes_.size(); }
  std::size_t position() const { return at_; }
  std::size_t remaining() const { return bytes_.size() - at_; }

  /// Returns the next opcode. Later errors report its position.
  std::byte opcode() {
    opcode_at_ = at_;
    if (at_end()) fail_at_end("the pickle ends without STOP: it is truncated");
    return bytes_[at_++];
  }
  std::size_t opcode_position() const { return opcode_at_; }

  template <class T>
  T take() {
    return load_le<T>(skip(sizeof(T)));
  }
  /// Reads a big-endian double.
  double take_double();
  /// Returns the next `length` bytes, which must remain, and stays where it is.
  std::string_view ahead(std::uint64_t length) const {
    return as_text(bytes_.subspan(at_, static_cast<std::size_t>(length)));
  }
  /// Returns the next `length` bytes.
  ByteSpan skip(std::uint64_t length) {
    if (length > remaining()) fail_short(length);
    const ByteSpan taken = bytes_.subspan(at_, static_cast<std::size_t>(length));
    at_ += static_cast<std::size_t>(length);
    return taken;
  }
  /// Returns the text up to the next newline and skips that newline. The text has at most
  /// `length_max` bytes.
  std::string_view line(std::size_t length_max);

  [[noreturn]] void fail(Code code, std::string message) const;
  /// Fails because the input ends too early.
  [[noreturn]] void fail_at_end(std::string message);
  bool ran_out() const { return ran_out_; }

 private:
  [[noreturn]] void fail_short(std::uint64_t length);

  ByteSpan bytes_;
  const PickleSource& where_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  bool ran_out_ = false;  ///< true if it failed because the input ended
};

}  // namespace reprise::pickle
