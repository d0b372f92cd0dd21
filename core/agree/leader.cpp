#include "core/agree/leader.hpp"

#include <algorithm>
#include <string>

namespace reprise {
namespace {

void require_member(const Group& group, GroupRank leader) {
  if (leader.value >= 0 && leader.value < group.size()) return;
  throw Error(Code::kCollectiveMismatch,
              "group rank " + std::to_string(leader.value) +
                  " should be the leader of a group of " + std::to_string(group.size()) +
                  " ranks, whose first is " + std::to_string(group.member({0}).value));
}

/// Checks that the leader, and only the leader, did the leader's work. Throws otherwise.
void require_one_answer(const Group& group, GroupRank leader, const std::vector<Bytes>& all) {
  const auto silent =
      std::count_if(all.begin(), all.end(), [](const Bytes& answer) { return answer.empty(); });
  const bool answered = !all[static_cast<std::size_t>(leader.value)].empty();
  if (answered && silent == group.size() - 1) return;
  throw Error(Code::kCollectiveMismatch, "rank " + std::to_string(group.member(leader).value) +
                                             " is taken to be the leader of its group, but " +
                                             std::to_string(group.size() - silent) +
                                             " ranks did the leader's work" +
                                             (answered ? "" : ", and it was not one of them"));
}

}  // namespace

GroupRank first_member(const Communicator&) { return {0}; }

Bytes from_leader(Communicator& group, const LeaderSeams& seams,
                  const std::function<Bytes()>& work) {
  GroupRank leader;
  auto all = agree_on(group, [&] {
    leader = seams.leader(group);
    require_member(group.group(), leader);
    Bytes answer;
    if (group.rank() != leader) return answer;
    answer = work();
    // Appends a byte, because an empty answer means that the rank did not do the work.
    answer.push_back(std::byte{1});
    return answer;
  });
  require_one_answer(group.group(), leader, all);
  Bytes& answer = all[static_cast<std::size_t>(leader.value)];
  answer.pop_back();
  return std::move(answer);
}

}  // namespace reprise
