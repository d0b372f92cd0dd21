#include "sim/fibers/event_log.hpp"

namespace reprise::sim {
namespace {

// Writes the length before the text. Otherwise two different events might have the same bytes.
void put_text(Bytes& out, std::string_view text) {
  append_le(out, static_cast<std::uint64_t>(text.size()));
  append(out, as_bytes(text));
}

}  // namespace

EventLog::EventLog(std::int32_t world_size, LoggedEvents calls)
    : calls_(std::move(calls)), ranks_(static_cast<std::size_t>(world_size)) {}

void EventLog::record(GlobalRank rank, std::string_view kind, std::string_view where,
                      std::initializer_list<std::uint64_t> numbers) {
  event_.clear();
  put_text(event_, kind);
  put_text(event_, where);
  for (const auto number : numbers) append_le(event_, number);
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
