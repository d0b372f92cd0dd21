#pragma once
// Implements a communicator over the connections of a rank.

#include <memory>
#include <optional>
#include <string>

#include "core/adapters/socket/links.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

/// Every call is one exchange in which each member gets the bytes of all, in about log2(members)
/// rounds. In round i a member sends what it has to the member 2^i places ahead. So a member is
/// connected to few others, and a call ends only after all members have begun it.
///
///   4 members, what they have:   0      1      2      3
///   to the member 1 ahead        0 3    1 0    2 1    3 2
///   to the member 2 ahead        0 3 2 1   ...
class SocketCommunicator final : public Communicator {
 public:
  /// Collective. Returns when all members have come. `name` distinguishes it from other
  /// communicators.
  SocketCommunicator(std::shared_ptr<Links> links, Group group, GlobalRank self,
                     std::chrono::nanoseconds deadline, std::uint64_t name);
  ~SocketCommunicator() override { links_->close(channel_); }
  SocketCommunicator(const SocketCommunicator&) = delete;
  SocketCommunicator& operator=(const SocketCommunicator&) = delete;

  const Group& group() const override { return group_; }
  GroupRank rank() const override { return rank_; }
  void barrier() override;
  std::vector<Bytes> all_gather(ByteSpan mine) override;
  Bytes broadcast(GroupRank root, ByteSpan bytes) override;
  std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) override;
  void warn() override { links_->warn(channel_); }
  bool warned() override { return links_->warned(channel_); }

 private:
  enum class Operation : std::uint8_t { kBegin, kBarrier, kAllGather, kBroadcast, kAllReduce };

  /// Returns the bytes of all members, in group order. `detail` must be the same on all of them.
  std::vector<Bytes> exchange(Operation operation, ByteSpan mine, std::uint32_t detail = 0);
  std::vector<SharedBytes> gather(const CallId& call, ByteSpan mine, Instant end);
  SharedBytes receive(GlobalRank from, const CallId& call, Instant end);
  GlobalRank member_at(std::int32_t place) const;

  std::shared_ptr<Links> links_;
  Group group_;
  GlobalRank self_;
  GroupRank rank_;
  std::chrono::nanoseconds deadline_;
  Channel channel_;
  std::uint64_t sequence_ = 0;
  std::optional<Error> broken_;
};

}  // namespace reprise
