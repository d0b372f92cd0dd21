#pragma once
// Defines the network between the ranks of one life: the channels of all groups, and a
// record of the ranks that died or failed.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/world/collective.hpp"
#include "sim/world/rank_context.hpp"

namespace reprise::sim {

class SimNetwork {
 public:
  /// A member of a call waits at most `deadline_after_ns` of virtual time. Without a deadline, the
  /// member waits until the world is found to be deadlocked. When all have come, the call takes
  /// until each member's link, which has the rate `link`, has carried its bytes.
  SimNetwork(Scheduler& scheduler, std::optional<std::uint64_t> deadline_after_ns, Rate link = {});

  /// Returns the next channel of `group` for this member. If each member calls this n times for a
  /// group, all members get the same channel from their n-th call.
  std::shared_ptr<Channel> channel(const Group& group, GlobalRank member);

  /// Makes one collective call for the rank of `life`: contributes `mine` and returns the bytes of
  /// all members in group order. Throws COLLECTIVE_MISMATCH, PEER_FAILED, DEADLINE, or the error
  /// that broke the channel earlier.
  std::vector<Bytes> meet(RankContext& life, Channel& channel, const CollectiveCall& call,
                          ByteSpan mine);

  /// Records that a rank died or failed with `why`. Peers that wait for that rank get PEER_FAILED.
  void gone(GlobalRank rank, const Error& why);

 private:
  Rendezvous& join(Channel& channel, GroupRank member, std::uint64_t sequence,
                   const CollectiveCall& call, ByteSpan mine);
  void wait_for_all(RankContext& life, Channel& channel, std::uint64_t sequence);
  void carry(RankContext& life, const Rendezvous& met, ByteSpan mine);
  void break_if_member_gone(Channel& channel, std::uint64_t sequence);
  void break_channel(Channel& channel, const Error& why);

  Scheduler& scheduler_;
  std::optional<std::uint64_t> deadline_after_ns_;
  Rate link_;
  std::map<GlobalRank, Resource> links_;
  std::map<std::vector<GlobalRank>, std::vector<std::shared_ptr<Channel>>> channels_;
  std::uint64_t channels_made_ = 0;
  std::map<std::pair<std::vector<GlobalRank>, GlobalRank>, std::size_t> asked_;
  std::map<GlobalRank, Error> gone_;
};

}  // namespace reprise::sim
