#include "core/engine/leader.hpp"

#include <string>

namespace reprise {
namespace {

void require_member(const Group& group, GroupRank rank, std::string_view what) {
  if (rank.value >= 0 && rank.value < group.size()) return;
  throw Error(Code::kCollectiveMismatch,
              "group rank " + std::to_string(rank.value) + " is to be the " + std::string(what) +
                  " of a group of " + std::to_string(group.size()) +
                  " ranks, the first of which is " + std::to_string(group.member({0}).value));
}

}  // namespace

GroupRank first_member(const Group&) { return {0}; }

Bytes from_leader(Communicator& group, const LeaderSeams& seams,
                  const std::function<Bytes()>& work) {
  const GroupRank leader = seams.leader(group.group());
  require_member(group.group(), leader, "leader");
  const GroupRank root = seams.root(group.group());
  require_member(group.group(), root, "root");
  auto all = agree_on(group, [&] {
    Bytes answer;
    if (group.rank() != leader) return answer;
    answer = work();
    answer.push_back(std::byte{1});  // an answer is never empty
    return answer;
  });
  Bytes& answer = all[static_cast<std::size_t>(root.value)];
  if (answer.empty()) {
    throw Error(Code::kCollectiveMismatch,
                "rank " + std::to_string(group.group().member(root).value) +
                    " is taken for the leader of its group, and rank " +
                    std::to_string(group.group().member(leader).value) + " did the leader's work");
  }
  answer.pop_back();
  return std::move(answer);
}

}  // namespace reprise
