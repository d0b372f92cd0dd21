#include "sim/faults/address_set.hpp"

#include <algorithm>
#include <iterator>

namespace reprise::sim {

bool AddressSet::covers(AddressRange range) const {
  if (range.empty()) return true;
  const auto after = ranges_.upper_bound(range.begin);
  return after != ranges_.begin() && std::prev(after)->second >= range.end;
}

bool AddressSet::meets(AddressRange range) const {
  if (range.empty()) return false;
  const auto after = ranges_.lower_bound(range.end);
  return after != ranges_.begin() && std::prev(after)->second > range.begin;
}

void AddressSet::add(AddressRange range) {
  if (covers(range)) return;
  auto next = ranges_.upper_bound(range.begin);
  if (next != ranges_.begin() && std::prev(next)->second >= range.begin) --next;
  while (next != ranges_.end() && next->first <= range.end) {
    range.begin = std::min(range.begin, next->first);
    range.end = std::max(range.end, next->second);
    bytes_ -= next->second - next->first;
    next = ranges_.erase(next);
  }
  ranges_.emplace(range.begin, range.end);
  bytes_ += range.end - range.begin;
}

void AddressSet::clear() {
  ranges_.clear();
  bytes_ = 0;
}

}  // namespace reprise::sim
