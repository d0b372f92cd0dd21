#include "sim/fibers/event_log.hpp"

#include <algorithm>
#include <cstring>

namespace reprise::sim {
namespace {

std::byte* put(std::byte* at, std::uint64_t number) {
  std::memcpy(at, &number, sizeof(number));
  return at + sizeof(number);
}

// Writes the length before the text. Otherwise two different events might have the same bytes.
std::byte* put(std::byte* at, std::string_view text) {
  at = put(at, text.size());
  return std::ranges::copy(as_bytes(text), at).out;
}

}  // namespace

EventLog::EventLog(std::int32_t world_size, LoggedEvents calls)
    : calls_(std::move(calls)), ranks_(static_cast<std::size_t>(world_size)) {}

void EventLog::record(GlobalRank rank, std::string_view kind, std::string_view where,
                      std::initializer_list<std::uint64_t> numbers) {
  event_.resize((2 + numbers.size()) * sizeof(std::uint64_t) + kind.size() + where.size());
  std::byte* at = put(put(event_.data(), kind), where);
  for (const auto number : numbers) at = put(at, number);
  const std::uint64_t digest = hash_of(ByteSpan(event_));
  ranks_[static_cast<std::size_t>(rank.value)].number(digest);
  all_.number(static_cast<std::uint64_t>(rank.value)).number(digest);
  ++count_;
  if (calls_) calls_({rank, kind, where, numbers});
}

std::uint64_t EventLog::digest(GlobalRank rank) const {
  return ranks_[static_cast<std::size_t>(rank.value)].digest();
}

}  // namespace reprise::sim
