#pragma once
// Holds the NCCL resources of one communicator, and the memory through which its bytes pass. Only
// this folder's sources include this header.

#include <nccl.h>

#include <functional>
#include <memory>
#include <string>

#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/adapters/nccl/nccl_fabric.hpp"
#include "core/base/bytes.hpp"
#include "core/ports/call_deadline.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// Copies bytes from pinned memory to device memory, lets NCCL work on them in place, and copies
/// them back if they are wanted on the host. Only one communicator at a time uses a link. Work
/// queued on the device may continue after a failure, so a link that failed frees nothing.
class NcclLink {
 public:
  struct Setting {
    Clock& clock;
    NcclLimits limits;
    int device;
    std::shared_ptr<Communicator> members;  ///< the same group on the fabric that connects it
  };
  /// Queues one operation, or several in one NCCL group. `device` is device_memory().
  using Start =
      std::function<ncclResult_t(std::byte* device, ncclComm_t comm, cudaStream_t stream)>;

  /// `self` must be a member. Creates the memory and the stream, but does not connect to other
  /// members.
  NcclLink(Setting setting, Group group, GlobalRank self);
  /// Does not abort NCCL. Frees the memory only if the link was never connected or was closed.
  ~NcclLink();
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  const Group& group() const { return group_; }
  GroupRank rank() const { return *group_.rank_of(self_); }
  GlobalRank self() const { return self_; }
  const NcclLimits& limits() const { return setting_.limits; }
  /// Starts the deadline of a call. Error messages contain the text that `describe` returns.
  CallDeadline deadline(std::function<std::string()> describe) const;

  /// Connects the members with an id that one of them created. Collective over the group.
  void connect(const ncclUniqueId& id, CallDeadline& deadline);
  /// Allocates NcclLimits::piece_bytes of pinned memory and as much on the device, with room for
  /// the ends of the members' shares, for all later calls: an allocation beside the job may fail on
  /// one member, and the others would wait for it.
  void allocate();
  /// Waits until what allocate() queued is done, so that the memory may be freed.
  void await_memory(CallDeadline& deadline);
  /// Returns the pinned memory, of which `bytes` bytes are used.
  MutableByteSpan staging(std::uint64_t bytes) const;
  /// Returns the device memory to which run() copies.
  ByteSpan device_memory() const { return {memory_->device.data(), memory_->device.size()}; }
  /// Returns `bytes`, or a copy in the pinned memory if the device can't copy from them.
  ByteSpan within_reach(ByteSpan bytes) const;
  /// Collective. Copies `from` to `place` in device memory, calls `start` to queue the NCCL work,
  /// waits until that work is done, and copies [0, down) back to the pinned memory. The device must
  /// be able to copy from `from`. Throws the same errors as CallDeadline::until() and check_nccl;
  /// `from` may then stay in use. If NCCL reports any failure after the watch has reported the end
  /// of a member, the code is PEER_FAILED.
  void run(ByteSpan from, std::uint64_t place, std::uint64_t down, const Start& start,
           CallDeadline& deadline);
  /// Frees the NCCL resources and the memory. Collective.
  void close(CallDeadline& deadline);

  /// Gives up the NCCL communicator, which the caller must abort. Returns null if there is none.
  ncclComm_t abandon();

  /// Tells the other members that this one has failed: they would wait for it until their deadline.
  void warn() { setting_.members->warn(); }

  bool idle() const { return idle_ && !abandoned_; }
  void set_idle(bool idle) { idle_ = idle; }

 private:
  struct Memory {
    explicit Memory(int of_device) : stream(of_device), done(of_device) {}
    CudaStream stream;
    CudaEvent done;
    PinnedMemory host;
    DeviceMemory device;
  };

  void check(ncclResult_t result, const CallDeadline& deadline) const;
  bool member_has_failed() const;
  void require_members(const CallDeadline& deadline) const;
  void await_queued(CallDeadline& deadline);
  ncclResult_t state(const CallDeadline& deadline) const;

  Setting setting_;
  Group group_;
  GlobalRank self_;
  std::unique_ptr<Memory> memory_;
  ncclComm_t comm_ = nullptr;
  bool idle_ = false;
  bool abandoned_ = false;
};

}  // namespace reprise
