#pragma once
// A group is an ordered list of global ranks: the only notion of "who" in this project.

#include <optional>
#include <ostream>
#include <vector>

#include "core/base/ids.hpp"

namespace reprise {

class Group {
 public:
  /// The members, in the order that gives them their ranks within the group. No member twice.
  explicit Group(std::vector<GlobalRank> members);
  /// Ranks 0 .. size-1.
  static Group world(std::int32_t size);

  std::int32_t size() const { return static_cast<std::int32_t>(members_.size()); }
  const std::vector<GlobalRank>& members() const { return members_; }
  GlobalRank member(GroupRank rank) const;
  std::optional<GroupRank> rank_of(GlobalRank rank) const;

  friend bool operator==(const Group&, const Group&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Group& group);

 private:
  std::vector<GlobalRank> members_;
};

}  // namespace reprise
