#include "core/base/utf8.hpp"

#include <cstddef>

namespace reprise {
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

bool is_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int tail = tail_length(lead);
    if (tail < 0 || static_cast<std::size_t>(tail) >= text.size() - i) return false;
    for (int t = 1; t <= tail; ++t) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(t)]);
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

}  // namespace reprise
