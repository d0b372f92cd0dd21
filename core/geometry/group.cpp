#include "reprise/mesh.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise {

Group::Group(std::vector<GlobalRank> members) : members_(std::move(members)) {
  auto sorted = members_;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw Error(Code::kLayoutMismatch,
                "rank " + std::to_string(twice->value) + " occurs twice in a group");
  }
  if (!sorted.empty() && sorted.front().value < 0) {
    throw Error(Code::kLayoutMismatch, "a group has a negative rank");
  }
}

Group Group::world(std::int32_t size) {
  if (size < 0) {
    throw Error(Code::kUsage, "size: a world of " + std::to_string(size) +
                                  " ranks; it must have 0 to " +
                                  std::to_string(std::numeric_limits<std::int32_t>::max()));
  }
  std::vector<GlobalRank> members;
  for (std::int32_t rank = 0; rank < size; ++rank) members.push_back({rank});
  return Group(std::move(members));
}

GlobalRank Group::member(GroupRank rank) const {
  if (rank.value < 0 || rank.value >= size()) {
    throw Error(Code::kUsage,
                "rank: " + std::to_string(rank.value) + " in a group of " + std::to_string(size()) +
                    " ranks; " +
                    (size() == 0 ? "it has none" : "they are 0 to " + std::to_string(size() - 1)));
  }
  return members_[static_cast<std::size_t>(rank.value)];
}

std::optional<GroupRank> Group::rank_of(GlobalRank rank) const {
  const auto found = std::find(members_.begin(), members_.end(), rank);
  if (found == members_.end()) return std::nullopt;
  return GroupRank{static_cast<std::int32_t>(found - members_.begin())};
}

std::ostream& operator<<(std::ostream& out, const Group& group) {
  return out << '{' << join(group.members(), " ") << '}';
}

}  // namespace reprise
