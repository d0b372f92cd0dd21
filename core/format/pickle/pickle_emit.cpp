#include "core/format/pickle/pickle_emit.hpp"

#include <algorithm>
#include <bit>

#include "core/base/hash.hpp"
#include "core/base/utf8.hpp"
#include "core/format/pickle/pickle_names.hpp"
#include "reprise/error.hpp"

namespace reprise::pickle {
namespace {

constexpr std::size_t kGarbledShown = 100;  ///< bytes of a refused text that its message shows

}  // namespace

Emitter::Emitter(Protocol protocol) : protocol_(protocol) {
  op('\x80');
  op(protocol == Protocol::kTwo ? '\x02' : '\x04');
}

Bytes Emitter::finish() {
  op('.');
  return std::move(out_);
}

void Emitter::integer(std::int64_t value) {
  if (value >= 0 && value <= 0xff) {
    op('K');
    append_le(out_, static_cast<std::uint8_t>(value));
  } else if (value >= 0 && value <= 0xffff) {
    op('M');
    append_le(out_, static_cast<std::uint16_t>(value));
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    op('J');
    append_le(out_, static_cast<std::int32_t>(value));
  } else {
    Bytes digits;
    append_le(digits, value);
    big_integer(digits);
  }
}

void Emitter::big_integer(ByteSpan digits) {
  // Uses the shortest form: drops the most significant bytes that only repeat the sign.
  while (digits.size() > 1) {
    const auto last = static_cast<unsigned>(digits.back());
    const auto before = static_cast<unsigned>(digits[digits.size() - 2]);
    const bool repeats = (last == 0 && before < 0x80) || (last == 0xff && before >= 0x80);
    if (!repeats) break;
    digits = digits.first(digits.size() - 1);
  }
  if (digits.size() > 255) {
    op('\x8b');
    append_le(out_, static_cast<std::uint32_t>(digits.size()));
  } else {
    op('\x8a');
    append_le(out_, static_cast<std::uint8_t>(digits.size()));
  }
  append(out_, digits);
}

void Emitter::floating(double value) {
  op('G');
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int shift = 56; shift >= 0; shift -= 8) {
    out_.push_back(static_cast<std::byte>(bits >> static_cast<unsigned>(shift)));
  }
}

void Emitter::text(std::string_view value) {
  if (!is_utf8(value)) {
    throw Error(Code::kUnsupported, "a pickle can only hold UTF-8 strings, unlike '" +
                                        std::string(value.substr(0, kGarbledShown)) + "'");
  }
  if (protocol_ == Protocol::kFour && value.size() <= 0xff) {
    op('\x8c');
    append_le(out_, static_cast<std::uint8_t>(value.size()));
  } else {
    if (value.size() > 0xffffffff) {
      throw Error(Code::kUnsupported, "a string of 4 GiB or more can't be written");
    }
    op('X');
    append_le(out_, static_cast<std::uint32_t>(value.size()));
  }
  append(out_, as_bytes(value));
}

void Emitter::bytes(ByteSpan value) {
  if (value.empty()) {
    global("builtins", "bytes");
    empty_tuple();
    return op('R');
  }
  std::string latin;
  for (const std::byte b : value) {
    const auto code = static_cast<unsigned>(b);
    if (code >= 0x80) latin.push_back(static_cast<char>(0xc0U | (code >> 6U)));
    latin.push_back(static_cast<char>(code >= 0x80 ? 0x80U | (code & 0x3fU) : code));
  }
  global("_codecs", "encode");
  text(latin);
  shared_text("latin1");
  tuple(2);
  op('R');
}

void Emitter::tuple(std::size_t count) {
  if (count == 0) return empty_tuple();
  op(count == 1 ? '\x85' : count == 2 ? '\x86' : count == 3 ? '\x87' : 't');
}

std::uint32_t Emitter::memoize() {
  const std::uint32_t index = memo_count_++;
  if (protocol_ == Protocol::kFour) {
    op('\x94');
  } else if (index <= 0xff) {
    op('q');
    append_le(out_, static_cast<std::uint8_t>(index));
  } else {
    op('r');
    append_le(out_, index);
  }
  return index;
}

void Emitter::get(std::uint32_t index) {
  if (index <= 0xff) {
    append(out_, std::array{std::byte{'h'}, static_cast<std::byte>(index)});
  } else {
    op('j');
    append_le(out_, index);
  }
}

bool Emitter::Lasting::is(std::string_view a, std::string_view b) const {
  const auto same = [](std::string_view one, std::string_view other) {
    return one.data() == other.data() && one.size() == other.size();
  };
  return index != kNone && same(name, b) && same(module, a);
}

Emitter::Lasting& Emitter::lasting(std::string_view name) {
  return lasting_[mix64(std::bit_cast<std::uintptr_t>(name.data())) % lasting_.size()];
}

void Emitter::global(std::string_view module, std::string_view name) {
  Lasting& last = lasting(name);
  if (last.is(module, name)) return get(last.index);
  const std::pair key{module, name};
  const auto known = globals_.find(key);
  if (known != globals_.end()) {
    last = {module, name, known->second};
    return get(known->second);
  }
  if (protocol_ == Protocol::kTwo) {
    const ModuleAndName written = protocol2_name({module, name});
    op('c');
    append(out_, as_bytes(written.module));
    op('\n');
    append(out_, as_bytes(written.name));
    op('\n');
  } else {
    shared_text(module);
    shared_text(name);
    op('\x93');
  }
  last = {module, name, globals_.emplace(key, memoize()).first->second};
}

std::uint32_t Emitter::shared_text(std::string_view value) {
  if (const auto known = texts_.find(value, out_)) {
    get(*known);
    return *known;
  }
  text(value);
  texts_.add(value, memo_count_, out_);
  return memoize();
}

void Emitter::lasting_text(std::string_view value) {
  Lasting& last = lasting(value);
  if (last.is({}, value)) return get(last.index);
  last = {{}, value, shared_text(value)};
}

std::optional<std::uint32_t> Emitter::index_of(std::string_view text) const {
  return texts_.find(text, out_);
}

}  // namespace reprise::pickle
