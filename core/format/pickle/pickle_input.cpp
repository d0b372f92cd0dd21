#include "core/format/pickle/pickle_input.hpp"

#include <bit>

#include "core/format/pickle/pickle_machine.hpp"
#include "reprise/error.hpp"

namespace reprise::pickle {

Error error_at(const PickleSource& where, std::size_t position, Code code, std::string message) {
  return Error(code, std::move(message),
               {.key = where.key, .file = where.file, .offset = where.offset + position});
}

Input::Input(ByteSpan bytes, const PickleSource& where) : bytes_(bytes), where_(where) {
  if (bytes.size() >= 0xffffffff) {
    fail(Code::kLimit, "a pickle of 4 GiB or more is not supported");
  }
}

double Input::take_double() {
  const ByteSpan big = skip(8);
  std::uint64_t bits = 0;
  for (const std::byte b : big) bits = (bits << 8U) | static_cast<std::uint64_t>(b);
  return std::bit_cast<double>(bits);
}

void Input::fail_short(std::uint64_t length) {
  fail_at_end("the pickle is truncated or garbled: " + std::to_string(length) +
              " bytes should follow, " + std::to_string(remaining()) + " do");
}

std::string_view Input::line(std::size_t length_max) {
  const std::string_view rest = as_text(bytes_.subspan(at_)).substr(0, length_max + 1);
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) {
    fail_at_end("a line of the pickle has no end: truncated or garbled");
  }
  at_ += end + 1;
  return rest.substr(0, end);
}

void Input::fail_at_end(std::string message) {
  ran_out_ = true;
  fail(Code::kTornFile, std::move(message));
}

void Input::fail(Code code, std::string message) const {
  throw error_at(where_, opcode_at_, code, std::move(message));
}

}  // namespace reprise::pickle
