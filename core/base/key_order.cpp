#include "core/base/key_order.hpp"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace reprise {
namespace {

/// Returns how many bytes all keys have in common at their beginning.
std::size_t common_prefix(std::span<const std::string_view> keys) {
  std::size_t length = keys.empty() ? 0 : keys.front().size();
  for (const std::string_view key : keys) {
    const auto part = keys.front().substr(0, length);
    length = static_cast<std::size_t>(
        std::mismatch(part.begin(), part.end(), key.begin(), key.end()).first - part.begin());
  }
  return length;
}

/// Returns the first bytes as a number that is ordered like them.
std::uint64_t head_of(std::string_view text) {
  std::uint64_t head = 0;
  for (std::size_t i = 0; i < sizeof(head); ++i) {
    head = (head << 8U) | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0U);
  }
  return head;
}

struct Entry {
  std::uint64_t head;
  std::string_view rest;  ///< the key without what all have in common
  std::uint32_t at;

  friend bool operator<(const Entry& a, const Entry& b) {
    if (a.head != b.head) return a.head < b.head;
    return std::tie(a.rest, a.at) < std::tie(b.rest, b.at);
  }
};

}  // namespace

std::vector<std::uint32_t> order_of_keys(std::span<const std::string_view> keys) {
  const std::size_t prefix = common_prefix(keys);
  std::vector<Entry> entries;
  entries.reserve(keys.size());
  for (const std::string_view key : keys) {
    const std::string_view rest = key.substr(prefix);
    entries.push_back({head_of(rest), rest, static_cast<std::uint32_t>(entries.size())});
  }
  if (!std::is_sorted(entries.begin(), entries.end())) std::sort(entries.begin(), entries.end());
  std::vector<std::uint32_t> order;
  order.reserve(keys.size());
  for (const Entry& entry : entries) order.push_back(entry.at);
  return order;
}

}  // namespace reprise
