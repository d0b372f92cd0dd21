#pragma once
// Implements the fabric (reprise/fabric.hpp) over TCP.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/adapters/socket/links.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

/// Creates communicators. After PEER_FAILED, every call on every communicator throws; after any
/// other error only those on the one that it came from.
class SocketFabric final : public Fabric {
 public:
  SocketFabric(GlobalRank rank, std::int32_t size, std::chrono::nanoseconds deadline,
               std::shared_ptr<Links> links);

  GlobalRank rank() const override { return rank_; }
  std::int32_t world_size() const override { return size_; }
  /// See Links::ask().
  void ask(std::function<bool()> interrupted) { links_->ask(std::move(interrupted)); }
  /// Throws USAGE if this rank is not a member, or if a member is no rank of the job.
  std::shared_ptr<Communicator> communicator(const Group& group) override;

 private:
  GlobalRank rank_;
  std::int32_t size_;
  std::chrono::nanoseconds deadline_;
  std::shared_ptr<Links> links_;
  /// How many communicators each group has had. It is the same on all its members.
  std::map<std::vector<GlobalRank>, std::uint64_t> made_;
};

}  // namespace reprise
