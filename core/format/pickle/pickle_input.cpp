#include "core/format/pickle/pickle_input.hpp"

#include <bit>

#include "core/format/pickle/pickle_machine.hpp"
#include "reprise/error.hpp"

namespace reprise::pickle {
namespace {

/// Returns how many bytes follow a UTF-8 lead byte; -1 if the byte is not a lead byte.
int tail_length(unsigned lead) {
  if (lead < 0x80) return 0;
  if (lead >= 0xc2 && lead < 0xe0) return 1;
  if (lead >= 0xe0 && lead < 0xf0) return 2;
  if (lead >= 0xf0 && lead < 0xf5) return 3;
  return -1;
}

}  // namespace

Error error_at(const PickleSource& where, std::size_t position, Code code, std::string message) {
  return Error(code, std::move(message),
               {.key = where.key, .file = where.file, .offset = where.offset + position});
}

Input::Input(ByteSpan bytes, const PickleSource& where) : bytes_(bytes), where_(where) {
  if (bytes.size() >= 0xffffffff) {
    fail(Code::kLimit, "a pickle of 4 GiB or more is not read");
  }
}

std::byte Input::opcode() {
  opcode_at_ = at_;
  if (at_end()) fail(Code::kTornFile, "the pickle ends without STOP: it is truncated");
  return bytes_[at_++];
}

double Input::take_double() {
  const ByteSpan big = skip(8);
  std::uint64_t bits = 0;
  for (const std::byte b : big) bits = (bits << 8U) | static_cast<std::uint64_t>(b);
  return std::bit_cast<double>(bits);
}

ByteSpan Input::skip(std::uint64_t length) {
  if (length > remaining()) {
    fail(Code::kTornFile, "the pickle is truncated or garbled: " + std::to_string(length) +
                              " bytes should follow, " + std::to_string(remaining()) + " do");
  }
  const ByteSpan taken = bytes_.subspan(at_, static_cast<std::size_t>(length));
  at_ += static_cast<std::size_t>(length);
  return taken;
}

std::string_view Input::line(std::size_t length_max) {
  const std::string_view rest = as_text(bytes_.subspan(at_)).substr(0, length_max + 1);
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) {
    fail(Code::kTornFile, "a name in the pickle has no end: truncated or garbled");
  }
  at_ += end + 1;
  return rest.substr(0, end);
}

void Input::fail(Code code, std::string message) const {
  throw error_at(where_, opcode_at_, code, std::move(message));
}

bool is_utf8(ByteSpan text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned>(text[i]);
    const int tail = tail_length(lead);
    if (tail < 0 || static_cast<std::size_t>(tail) >= text.size() - i) return false;
    for (int t = 1; t <= tail; ++t) {
      const auto next = static_cast<unsigned>(text[i + static_cast<std::size_t>(t)]);
      if ((next & 0xc0U) != 0x80U) return false;
      const bool overlong =
          t == 1 && ((lead == 0xe0 && next < 0xa0) || (lead == 0xf0 && next < 0x90));
      const bool beyond = t == 1 && lead == 0xf4 && next >= 0x90;
      if (overlong || beyond) return false;
    }
    i += static_cast<std::size_t>(tail) + 1;
  }
  return true;
}

}  // namespace reprise::pickle
