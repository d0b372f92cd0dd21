#pragma once
// Implements the fabric (reprise/fabric.hpp) with NCCL.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/ports/call_deadline.hpp"
#include "core/ports/clock.hpp"
#include "core/ports/peer_watch.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

class NcclLink;
class NcclLinks;

struct NcclLimits {
  std::uint64_t deadline_ns = kDefaultDeadlineNs;  ///< deadline of each call
  /// Maximum number of bytes that are sent at a time; must be at least 8. Larger buffers are sent
  /// in several pieces. A communicator allocates as much pinned memory when it is made, and as much
  /// on the device.
  std::uint64_t piece_bytes = Communicator::kOnDeviceMax;
  PeerWatch* watch = nullptr;  ///< not owned; if null, only the deadline ends a wait
};

/// Creates communicators that send bytes between GPUs with NCCL. Another fabric, the bootstrap,
/// connects the members first. Every call is started without blocking and polled until it is done.
/// A call fails if its deadline passes (DEADLINE), or if NCCL or the watch reports that a member
/// has ended (PEER_FAILED); all errors state group, operation and rank. The first error breaks the
/// whole fabric: every later call of a communicator throws that error and waits for nothing. A
/// request for a new one still meets the members over the bootstrap, which tells them. All NCCL
/// resources are aborted then, without waiting for the abort. An abort waits for the device, so the
/// process should make no other call of CUDA that it can do without.
///
/// If a communicator ended without an error, its NCCL resources are kept for the next communicator
/// of the same group, once all members have finished with them. Creating such resources is slow,
/// and freeing them waits for other ranks. All NCCL calls are made from one thread; only the abort,
/// which blocks, runs in another thread.
class NcclFabric final : public Fabric {
 public:
  /// `bootstrap` (with the same ranks), `clock` and the watch must outlive the fabric. `device` is
  /// a CUDA index. Throws UNSUPPORTED if the device cannot be used or if the program was built
  /// without NCCL.
  NcclFabric(Fabric& bootstrap, Clock& clock, NcclLimits limits, int device);
  /// Frees NCCL resources only if close() was called before. Otherwise, the process should exit
  /// with _Exit.
  ~NcclFabric() override;
  NcclFabric(const NcclFabric&) = delete;
  NcclFabric& operator=(const NcclFabric&) = delete;

  GlobalRank rank() const override { return bootstrap_.rank(); }
  std::int32_t world_size() const override { return bootstrap_.world_size(); }
  /// Creates a communicator of the group. Throws NO_SPACE on all members, and stays whole, if one
  /// of them has no room for it: the caller can use the bootstrap fabric instead. Throws USAGE if
  /// this rank is not a member, PEER_FAILED if the fabric of another member is broken, and passes
  /// on errors of the bootstrap fabric.
  std::shared_ptr<Communicator> communicator(const Group& group) override;

  /// True if the fabric is broken: a communicator failed or could not be created. Another member
  /// may then never arrive, so this rank must no longer wait for the other members.
  bool abandoned() const;
  /// Frees all NCCL resources. Collective over the members of each group that had a communicator.
  /// All communicators must have been destroyed before. Does nothing after a failure. Throws the
  /// same errors as a collective call.
  void close();

 private:
  std::shared_ptr<Communicator> introduced(const Group& group);
  std::shared_ptr<NcclLink> idle_link(const Group& group, Communicator& members);
  std::shared_ptr<NcclLink> own_part(const Group& group,
                                     const std::shared_ptr<Communicator>& members);
  std::shared_ptr<NcclLink> new_link(const Group& group,
                                     const std::shared_ptr<Communicator>& members);
  std::shared_ptr<NcclLink> link_of(const Group& group);

  Fabric& bootstrap_;
  [[maybe_unused]] Clock& clock_;  // no_nccl.cpp does not use it
  [[maybe_unused]] NcclLimits limits_;
  [[maybe_unused]] int device_;
  std::map<std::vector<GlobalRank>, std::shared_ptr<Communicator>> introduced_;
  std::shared_ptr<NcclLinks> links_;
};

}  // namespace reprise
