#pragma once
// Implements a communicator with NCCL. Only this folder's sources include this header.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/adapters/nccl/nccl_links.hpp"
#include "core/adapters/nccl/rounds.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

class NcclCommunicator final : public Communicator {
 public:
  /// `link`, one of `links`, must be connected. No one else may use it while this communicator
  /// exists.
  NcclCommunicator(std::shared_ptr<NcclLinks> links, std::shared_ptr<NcclLink> link);
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  const Group& group() const override { return link_->group(); }
  GroupRank rank() const override { return link_->rank(); }
  void barrier() override;
  std::vector<Bytes> all_gather(ByteSpan mine) override;
  /// Takes at most NcclLimits::piece_bytes in all, and 16 bytes more for each member.
  const std::byte* all_gather_on_device(std::uint64_t share, ByteSpan mine) override;
  Bytes broadcast(GroupRank root, ByteSpan bytes) override;
  std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) override;

 private:
  // Counts the call and runs `body(deadline)`. If `body` throws, all links are broken from then on.
  // Throws if they were already broken.
  template <class Body>
  auto call(const char* operation, Body&& body);
  std::string describe() const;

  std::vector<std::uint64_t> gather_sizes(std::uint64_t mine, CallDeadline& deadline);
  // Sends every member's buffer to all members, in rounds. `mine` is this member's buffer.
  std::vector<Bytes> exchange(std::span<const std::uint64_t> sizes, ByteSpan mine,
                              CallDeadline& deadline);
  // Fills the first round.bytes of the link's device memory, and copies them back to its staging.
  void run_round(const Round& round, ByteSpan mine, CallDeadline& deadline);
  void reduce(Reduce how, std::span<std::int64_t> numbers, CallDeadline& deadline);

  std::shared_ptr<NcclLinks> links_;
  std::shared_ptr<NcclLink> link_;
  const char* operation_ = "";
  std::uint64_t sequence_ = 0;
  bool within_call_ = false;  ///< true during a call, and forever after a call that failed
};

}  // namespace reprise
