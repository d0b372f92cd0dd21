#include "core/base/natural_order.hpp"

#include <algorithm>

namespace reprise {

bool in_natural_order(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  auto same = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  while (same > 0 && is_digit(a[same - 1])) --same;  // the number goes on in one of them
  a.remove_prefix(same);
  b.remove_prefix(same);
  const auto digits = [](std::string_view text) {
    return text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
  };
  const auto significant = [](std::string_view number) {
    return number.substr(std::min(number.find_first_not_of('0'), number.size()));
  };
  while (!a.empty() && !b.empty()) {
    const std::string_view left = digits(a);
    const std::string_view right = digits(b);
    if (!left.empty() && !right.empty()) {
      const std::string_view x = significant(left);
      const std::string_view y = significant(right);
      if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
      a.remove_prefix(left.size());
      b.remove_prefix(right.size());
    } else if (a.front() != b.front()) {
      return a.front() < b.front();
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

}  // namespace reprise
