#include "sim/world/event_log.hpp"

namespace reprise::sim {

EventLog::EventLog(std::int32_t world_size) : ranks_(static_cast<std::size_t>(world_size)) {}

void EventLog::record(GlobalRank rank, std::string_view kind, std::string_view where,
                      std::initializer_list<std::uint64_t> numbers) {
  Hasher event;
  event.text(kind).text(where);
  for (const auto number : numbers) event.number(number);
  const std::uint64_t digest = event.digest();
  ranks_[static_cast<std::size_t>(rank.value)].number(digest);
  all_.number(static_cast<std::uint64_t>(rank.value)).number(digest);
  ++count_;
}

std::uint64_t EventLog::digest(GlobalRank rank) const {
  return ranks_[static_cast<std::size_t>(rank.value)].digest();
}

}  // namespace reprise::sim
