#pragma once
// Implements the fabric with NCCL.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/ports/clock.hpp"
#include "core/ports/patience.hpp"
#include "core/ports/peer_watch.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

class NcclLink;

struct NcclLimits {
  std::uint64_t deadline_ns = kDefaultDeadlineNs;  ///< per call
  /// Size of the pieces that buffers are cut into, at least 8: limits a communicator's staging, in
  /// pinned memory and on the device.
  std::uint64_t piece_bytes = 1U << 26U;
  PeerWatch* watch = nullptr;  ///< borrowed; null: only the deadline ends a wait
};

/// Communicators that send bytes between GPUs with NCCL; another fabric connects the members first.
/// Every call is started without blocking and polled until it is done, its deadline has passed
/// (DEADLINE), or NCCL or the watch reports that a member has ended (PEER_FAILED); all errors name
/// group, operation and rank. After an error a communicator repeats it; its NCCL resources are
/// aborted and never waited for.
///
/// NCCL resources of a communicator that ended without error are kept for the next communicator of
/// the same group, once all members have finished with it: creating them is slow, and freeing waits
/// for peers. All calls come from one thread; only aborting, which blocks, uses another.
class NcclFabric final : public Fabric {
 public:
  /// Borrows `bootstrap` (of the same ranks), `clock` and the watch, which must outlive the fabric.
  /// `device` is a CUDA index. Throws UNSUPPORTED if it cannot be used or the program is built
  /// without NCCL.
  NcclFabric(Fabric& bootstrap, Clock& clock, NcclLimits limits, int device);
  /// Without close(), NCCL resources are not freed: the process should then end by _Exit.
  ~NcclFabric() override;
  NcclFabric(const NcclFabric&) = delete;
  NcclFabric& operator=(const NcclFabric&) = delete;

  GlobalRank rank() const override { return bootstrap_.rank(); }
  std::int32_t world_size() const override { return bootstrap_.world_size(); }
  /// Throws USAGE if this rank is not a member. Errors of the bootstrap fabric propagate.
  std::shared_ptr<Communicator> communicator(const Group& group) override;

  /// True if a communicator failed or could not be created: its peers must not be waited for.
  bool abandoned() const;
  /// Frees all NCCL resources. Collective over the members of each group that had a communicator;
  /// all of these must be gone. Does nothing after a failure. Throws like a call.
  void close();

 private:
  Communicator& introduced(const Group& group);
  std::shared_ptr<NcclLink> idle_link(const Group& group, Communicator& members);
  std::shared_ptr<NcclLink> new_link(const Group& group, Communicator& members);

  Fabric& bootstrap_;
  [[maybe_unused]] Clock& clock_;  // used in no_nccl.cpp
  [[maybe_unused]] NcclLimits limits_;
  [[maybe_unused]] int device_;
  std::map<std::vector<GlobalRank>, std::shared_ptr<Communicator>> introduced_;
  std::vector<std::shared_ptr<NcclLink>> links_;  ///< in order of creation
  [[maybe_unused]] bool not_made_ = false;        ///< creating a communicator failed
};

}  // namespace reprise
