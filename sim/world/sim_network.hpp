#pragma once
// Where the ranks of one incarnation meet: all groups' channels, and who is gone.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/world/collective.hpp"
#include "sim/world/rank_life.hpp"

namespace reprise::sim {

class SimNetwork {
 public:
  /// A member waits for `deadline_after_ns` of virtual time at most. Without it, it waits until the
  /// world is seen to be deadlocked.
  SimNetwork(Scheduler& scheduler, std::optional<std::uint64_t> deadline_after_ns);

  /// The n-th channel that this member asks for by this very group.
  std::shared_ptr<Channel> channel(const Group& group, GlobalRank member);

  /// One collective call of `member`: its part in, everybody's parts out, in group order. Throws
  /// COLLECTIVE_MISMATCH, PEER_FAILED, DEADLINE, or what broke the channel before.
  std::vector<Bytes> meet(RankLife& life, Channel& channel, const CollectiveCall& call,
                          ByteSpan mine);

  /// The rank died or failed with `why`: peers that wait for it, now or later, get PEER_FAILED.
  void gone(GlobalRank rank, const Error& why);

 private:
  Rendezvous& join(Channel& channel, GroupRank member, std::uint64_t sequence,
                   const CollectiveCall& call, ByteSpan mine);
  void wait_for_all(RankLife& life, Channel& channel, std::uint64_t sequence);
  void break_if_member_gone(Channel& channel, std::uint64_t sequence);
  void break_channel(Channel& channel, const Error& why);

  Scheduler& scheduler_;
  std::optional<std::uint64_t> deadline_after_ns_;
  std::map<std::vector<GlobalRank>, std::vector<std::shared_ptr<Channel>>> channels_;
  std::map<std::pair<std::vector<GlobalRank>, GlobalRank>, std::size_t> asked_;
  std::map<GlobalRank, Error> gone_;
};

}  // namespace reprise::sim
