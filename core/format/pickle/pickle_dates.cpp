#include "core/format/pickle/pickle_dates.hpp"

#include <array>
#include <optional>
#include <string>

namespace reprise::pickle {
namespace {

constexpr std::int64_t kMicrosecond = 1'000'000;
constexpr std::int64_t kDaySeconds = 86'400;

/// Returns a state of `length` bytes; nothing if the node is none. Protocol 2 turns bytes into a
/// str, each letter of which is a byte, and into a call that encodes it.
std::optional<std::string> packed_in(const Graph& graph, NodeId node, std::size_t length) {
  if (is_call_of(graph, node, "encode")) {
    const Nodes args = graph.tuple(graph.instance(node).args);
    if (args.empty()) return std::nullopt;
    node = args[0];
  }
  if (graph.kind(node) != Kind::kBytes && graph.kind(node) != Kind::kText) return std::nullopt;
  const std::string_view written = graph.text(node);
  if (written.size() > 2 * length) return std::nullopt;
  std::string packed;
  for (std::size_t i = 0; i < written.size(); ++i) {
    auto byte = static_cast<unsigned char>(written[i]);
    if (graph.kind(node) == Kind::kText && byte >= 0x80 && i + 1 < written.size()) {
      byte = static_cast<unsigned char>(((byte & 3U) << 6U) |
                                        (static_cast<unsigned char>(written[++i]) & 0x3fU));
    }
    packed += static_cast<char>(byte);
  }
  return packed.size() == length ? std::optional(packed) : std::nullopt;
}
Fit of_zone(const Graph& graph, Nodes rest) {
  if (rest.empty() || graph.kind(rest[0]) == Kind::kNone) return Fit::kFits;
  if (is_call_of(graph, rest[0], "timezone")) return Fit::kFits;
  return unless_made(graph, rest[0], false) == Fit::kUnread || graph.kind(rest[0]) == Kind::kName
             ? Fit::kUnread
             : Fit::kRefused;
}
bool in_ranges(const Graph& graph, Nodes items, std::size_t least,
               std::span<const std::array<std::int64_t, 2>> ranges) {
  if (items.size() < least || items.size() > ranges.size()) return false;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!is_small_int(graph, items[i])) return false;
    const std::int64_t value = integer_of(graph, items[i]);
    if (value < ranges[i][0] || value > ranges[i][1]) return false;
  }
  return true;
}
bool is_day(const Graph& graph, Nodes items) {
  constexpr std::array<std::int64_t, 12> kDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const std::int64_t year = integer_of(graph, items[0]);
  const std::int64_t month = integer_of(graph, items[1]);
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  const std::int64_t days =
      kDays[static_cast<std::size_t>(month - 1)] + (leap && month == 2 ? 1 : 0);
  return integer_of(graph, items[2]) <= days;
}
constexpr std::array<std::array<std::int64_t, 2>, 7> kDateTime{
    {{1, 9999}, {1, 12}, {1, 31}, {0, 23}, {0, 59}, {0, 59}, {0, kMicrosecond - 1}}};

unsigned byte_at(std::string_view packed, std::size_t at) {
  return static_cast<unsigned char>(packed[at]);
}
/// `month_at` is the position of the month in the packed state; the same for date and datetime.
Fit of_packed_date(const Graph& graph, Nodes items, std::size_t length, bool zone) {
  constexpr std::size_t kMonth = 2;
  if (items.empty() || items.size() > (zone ? 2U : 1U)) return Fit::kRefused;
  const auto packed = packed_in(graph, items[0], length);
  if (!packed) return Fit::kRefused;
  const unsigned month = byte_at(*packed, kMonth) & 0x7fU;
  if (month < 1 || month > 12) return Fit::kRefused;
  return zone ? of_zone(graph, items.subspan(1)) : Fit::kFits;
}
/// The units of a timedelta's first three arguments, in microseconds.
constexpr std::array<std::int64_t, 3> kUnits{kDaySeconds * kMicrosecond, kMicrosecond, 1};

std::int64_t floored(std::int64_t value, std::int64_t unit) {
  return value / unit - (value % unit < 0 ? 1 : 0);
}

}  // namespace

Fit of_datetime(const Graph& graph, Nodes items) {
  constexpr std::size_t kPacked = 10;
  if (!items.empty() && is_small_int(graph, items[0])) {
    const Nodes numbers = items.first(std::min(items.size(), kDateTime.size()));
    if (items.size() > kDateTime.size()) return Fit::kUnread;
    return when(in_ranges(graph, numbers, 3, kDateTime) && is_day(graph, numbers));
  }
  return of_packed_date(graph, items, kPacked, true);
}
Fit of_date(const Graph& graph, Nodes items) {
  constexpr std::size_t kPacked = 4;
  if (!items.empty() && is_small_int(graph, items[0])) {
    return when(in_ranges(graph, items, 3, std::span(kDateTime).first(3)) && is_day(graph, items));
  }
  return of_packed_date(graph, items, kPacked, false);
}
Fit of_time(const Graph& graph, Nodes items) {
  constexpr std::size_t kPacked = 6;
  if (items.empty()) return Fit::kFits;
  if (is_small_int(graph, items[0])) {
    if (items.size() > 4) return Fit::kUnread;
    return when(in_ranges(graph, items, 0, std::span(kDateTime).subspan(3)));
  }
  const auto packed = packed_in(graph, items[0], kPacked);
  if (items.size() > 2 || !packed || (byte_at(*packed, 0) & 0x7fU) >= 24) return Fit::kRefused;
  return of_zone(graph, items.subspan(1));
}
Fit of_timedelta(const Graph& graph, Nodes items) {
  constexpr std::int64_t kDaysMax = 999'999'999;
  if (items.size() > 7) return Fit::kRefused;
  if (items.size() > kUnits.size()) return Fit::kUnread;
  std::array<std::int64_t, 3> parts{};
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!is_number(graph, items[i])) return unless_made(graph, items[i], false);
    if (!is_small_int(graph, items[i])) return Fit::kUnread;
    parts[i] = integer_of(graph, items[i]);
  }
  // Smaller units carry over into larger ones, rounded down.
  std::int64_t days = parts[0];
  std::int64_t seconds = parts[1];
  if (__builtin_add_overflow(seconds, floored(parts[2], kMicrosecond), &seconds) ||
      __builtin_add_overflow(days, floored(seconds, kDaySeconds), &days)) {
    return Fit::kRefused;
  }
  return when(days >= -kDaysMax && days <= kDaysMax);
}
Fit of_timezone(const Graph& graph, Nodes items) {
  if (items.empty() || items.size() > 2) return Fit::kRefused;
  if (items.size() == 2 && !is_text(graph, items[1])) return unless_made(graph, items[1], false);
  if (!is_call_of(graph, items[0], "timedelta")) return unless_made(graph, items[0], false);
  const Nodes delta = graph.tuple(graph.instance(items[0]).args);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < delta.size(); ++i) {
    std::int64_t part = 0;
    if (i >= kUnits.size() || !is_small_int(graph, delta[i]) ||
        __builtin_mul_overflow(integer_of(graph, delta[i]), kUnits[i], &part) ||
        __builtin_add_overflow(total, part, &total)) {
      return Fit::kUnread;
    }
  }
  return when(total > -kUnits[0] && total < kUnits[0]);
}

}  // namespace reprise::pickle
