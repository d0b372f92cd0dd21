#pragma once
// Writes the opcodes of a pickle. One emitter writes one pickle.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/bytes.hpp"
#include "core/format/pickle/text_memo.hpp"
#include "reprise/tensor.hpp"

namespace reprise::pickle {

enum class Protocol : std::uint8_t {
  kTwo,   ///< BINUNICODE, GLOBAL, BINPUT: the opcodes that torch's weights_only unpickler accepts
  kFour,  ///< SHORT_BINUNICODE, STACK_GLOBAL, MEMOIZE
};

class Emitter {
 public:
  explicit Emitter(Protocol protocol);

  /// Ends the pickle and returns it. The emitter must not be used afterwards.
  Bytes finish();

  void op(char code) { out_.push_back(static_cast<std::byte>(code)); }
  void ops(std::string_view codes) { append(out_, as_bytes(codes)); }
  void none() { op('N'); }
  void boolean(bool value) { op(value ? '\x88' : '\x89'); }
  void integer(std::int64_t value);
  /// Writes LONG1 or LONG4; `digits` are in two's complement.
  void big_integer(ByteSpan digits);
  void floating(double value);
  /// Throws UNSUPPORTED if the text is not UTF-8, because nobody could read it again.
  void text(std::string_view value);
  /// Writes a bytes object. Protocol 2 has no opcode for it, so it is written as a call of
  /// `_codecs.encode(str, 'latin1')`, or of `bytes()` if the object is empty.
  void bytes(ByteSpan value);
  void empty_tuple() { op(')'); }
  void mark() { op('('); }
  /// Makes a tuple of the last `count` values. If there are more than three, mark() must be
  /// called before the first value is written.
  void tuple(std::size_t count);

  /// Stores the value that is on top of the stack in the memo and returns its index there.
  std::uint32_t memoize();
  void get(std::uint32_t index);
  /// Writes a class or function at its first use, and a reference to the memo at later uses. Both
  /// texts must outlive the emitter.
  void global(std::string_view module, std::string_view name);
  /// Writes text that occurs often. Like global(), writes it in full once and refers to the memo
  /// after that. Returns its index there.
  std::uint32_t shared_text(std::string_view value);
  /// Like shared_text(), for a text that outlives the emitter, such as the name of an attribute.
  void lasting_text(std::string_view value);
  /// Returns the memo index of a text that shared_text() has written; nothing if it has not.
  std::optional<std::uint32_t> index_of(std::string_view text) const;

 private:
  /// Remembers a lasting text that was written, such as one of the few names that each object of a
  /// large pickle repeats. It is found by its address.
  struct Lasting {
    std::string_view module;  ///< empty for a text
    std::string_view name;
    std::uint32_t index = kNone;

    static constexpr std::uint32_t kNone = 0xffffffff;
    bool is(std::string_view a, std::string_view b) const;
  };
  Lasting& lasting(std::string_view name);

  Protocol protocol_;
  Bytes out_;
  std::uint32_t memo_count_ = 0;
  std::map<std::pair<std::string_view, std::string_view>, std::uint32_t> globals_;
  TextMemo texts_;
  std::array<Lasting, 64> lasting_;
};

}  // namespace reprise::pickle
