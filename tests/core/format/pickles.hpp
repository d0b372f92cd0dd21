#pragma once
// Assembles pickles by hand, opcode by opcode.

#include <string>
#include <string_view>

#include "core/base/bytes.hpp"
#include "core/format/pickle/pickle_reader.hpp"

namespace reprise::test {

using namespace std::string_literals;

template <class T>
std::string le(T value) {
  Bytes bytes;
  append_le(bytes, value);
  return std::string(as_text(bytes));
}
/// Returns the opcode BINUNICODE with this text.
inline std::string text(std::string_view value) {
  return "X" + le(static_cast<std::uint32_t>(value.size())) + std::string(value);
}
/// Returns the opcode GLOBAL with these names.
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
/// Returns a whole pickle. The default protocol is 2.
inline Bytes pickle(const std::string& body, char protocol = 2) {
  return to_bytes("\x80"s + protocol + body + ".");
}
inline PickledValue decode(const Bytes& bytes) {
  return decode_value(bytes, {"hand.pkl", 100}, nullptr);
}
inline PickledValue decode(const std::string& body) { return decode(pickle(body)); }

}  // namespace reprise::test
