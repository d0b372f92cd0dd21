#pragma once
// The fabric over NCCL.

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
  std::uint64_t deadline_ns = kDefaultDeadlineNs;  ///< for each call
  /// Buffers go in pieces of this, at least 8: what a communicator's staging may grow to, in pinned
  /// memory and on the device.
  std::uint64_t piece_bytes = 1U << 26U;
  PeerWatch* watch = nullptr;  ///< borrowed; without one the deadline alone tells
};

/// Communicators whose bytes go between GPUs by NCCL; another fabric introduces the members to each
/// other. Every call is started without blocking and polled until it is done, until its deadline
/// has passed (DEADLINE), or until NCCL or the watch says that a member has ended (PEER_FAILED);
/// all name group, operation and rank. After an error a communicator repeats that error, and what
/// NCCL has of it is aborted and never waited for.
///
/// What NCCL has of a communicator that ended well is kept, and given to the next communicator of
/// the same group once all members are through with it: making one takes long, and ending one waits
/// for peers. All calls come from one thread; aborting alone, which blocks, is left to another.
class NcclFabric final : public Fabric {
 public:
  /// `bootstrap` (of the same ranks), `clock` and the watch are borrowed and outlive the fabric.
  /// `device` is a CUDA index. UNSUPPORTED if it can't be used or the program is built without
  /// NCCL.
  NcclFabric(Fabric& bootstrap, Clock& clock, NcclLimits limits, int device);
  /// Without close() nothing of NCCL's is freed: the process should leave by _Exit.
  ~NcclFabric() override;
  NcclFabric(const NcclFabric&) = delete;
  NcclFabric& operator=(const NcclFabric&) = delete;

  GlobalRank rank() const override { return bootstrap_.rank(); }
  std::int32_t world_size() const override { return bootstrap_.world_size(); }
  /// USAGE if this rank is no member. The bootstrap's errors pass.
  std::shared_ptr<Communicator> communicator(const Group& group) override;

  /// True once a communicator failed, or could not be made: its peers must not be waited for.
  bool abandoned() const;
  /// Frees what NCCL has. Collective over the members of each group that had a communicator, none
  /// of which is left. Does nothing after a failure. Errors as a call's.
  void close();

 private:
  Communicator& introduced(const Group& group);
  std::shared_ptr<NcclLink> idle_link(const Group& group, Communicator& members);
  std::shared_ptr<NcclLink> new_link(const Group& group, Communicator& members);

  Fabric& bootstrap_;
  [[maybe_unused]] Clock& clock_;  // in no_nccl.cpp
  [[maybe_unused]] NcclLimits limits_;
  [[maybe_unused]] int device_;
  std::map<std::vector<GlobalRank>, std::shared_ptr<Communicator>> introduced_;
  std::vector<std::shared_ptr<NcclLink>> links_;  ///< in the order of their making
  [[maybe_unused]] bool not_made_ = false;        ///< a communicator that was asked for
};

}  // namespace reprise
