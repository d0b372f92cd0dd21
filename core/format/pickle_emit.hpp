#pragma once
// Opcodes, written. One emitter writes one pickle.

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/bytes.hpp"
#include "core/base/hash.hpp"
#include "reprise/tensor.hpp"

namespace reprise::pickle {

enum class Protocol : std::uint8_t {
  kTwo,   ///< BINUNICODE, GLOBAL, BINPUT: what torch's weights_only unpickler takes
  kFour,  ///< SHORT_BINUNICODE, STACK_GLOBAL, MEMOIZE
};

class Emitter {
 public:
  explicit Emitter(Protocol protocol);

  /// Ends the pickle; the emitter is spent.
  Bytes finish();

  void op(char code) { out_.push_back(static_cast<std::byte>(code)); }
  void none() { op('N'); }
  void boolean(bool value) { op(value ? '\x88' : '\x89'); }
  void integer(std::int64_t value);
  /// LONG1 or LONG4 of two's complement digits.
  void big_integer(ByteSpan digits);
  void floating(double value);
  void text(std::string_view value);
  /// Protocol 2 has no bytes: `_codecs.encode(str, 'latin1')`, and `bytes()` if empty.
  void bytes(ByteSpan value);
  void empty_tuple() { op(')'); }
  void mark() { op('('); }
  /// Makes a tuple of the last `count` values; before more than three stands a mark().
  void tuple(std::size_t count);

  /// Puts the value on the stack into the memo and returns its index there.
  std::uint32_t memoize();
  void get(std::uint32_t index);
  /// A class or function: written once, then taken from the memo. Both texts outlive the emitter.
  void global(std::string_view module, std::string_view name);
  /// Text that occurs often: as global().
  void shared_text(std::string_view value);

 private:
  Protocol protocol_;
  Bytes out_;
  std::uint32_t memo_count_ = 0;
  std::map<std::pair<std::string_view, std::string_view>, std::uint32_t> globals_;
  /// By hash, since keys of a large state share long beginnings, then sorted, since texts of one
  /// hash can be made at will.
  std::map<std::uint64_t, std::map<std::string, std::uint32_t, std::less<>>> texts_;
};

}  // namespace reprise::pickle
