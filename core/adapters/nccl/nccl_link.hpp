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
#include "core/ports/patience.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

/// Copies bytes from pinned memory to device memory, lets NCCL work there in place, and copies the
/// bytes back. One communicator at a time uses a link. Work queued on the device may continue after
/// a failure, so a link that failed frees nothing.
class NcclLink {
 public:
  struct Setting {
    Clock& clock;
    NcclLimits limits;
    int device;
  };
  /// Queues one operation, or several in one NCCL group. `device` is the device memory into which
  /// staging was copied.
  using Start =
      std::function<ncclResult_t(std::byte* device, ncclComm_t comm, cudaStream_t stream)>;

  /// `self` must be a member. Creates memory and stream, but no connection yet.
  NcclLink(Setting setting, Group group, GlobalRank self);
  /// Frees nothing and does not abort, unless close() came first.
  ~NcclLink();
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  const Group& group() const { return group_; }
  GroupRank rank() const { return *group_.rank_of(self_); }
  GlobalRank self() const { return self_; }
  const NcclLimits& limits() const { return setting_.limits; }
  /// Returns the patience of a call that begins now. Messages contain what `describe` returns.
  Patience patience(std::function<std::string()> describe) const;

  /// Connects the members with an id that one of them created. Collective over the group.
  void connect(const ncclUniqueId& id, Patience& patience);
  /// Returns pinned memory of at least `bytes` bytes. If the memory has to grow, its content is
  /// lost.
  MutableByteSpan staging(std::uint64_t bytes);
  /// Collective. Copies the range `up` of staging to the device, runs the work that `start` queues,
  /// and copies [0, down) back. Returns when all of that is done. Throws like Patience and
  /// check_nccl. Also throws PEER_FAILED if NCCL reports another failure but the watch says that a
  /// member has ended.
  void run(ByteRange up, std::uint64_t down, const Start& start, Patience& patience);
  /// Frees the NCCL resources and the memory. Collective.
  void close(Patience& patience);

  /// Tells NCCL to stop, but does not wait until it has.
  void abandon();
  bool abandoned() const { return abandoned_; }

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

  void check(ncclResult_t result, const Patience& patience) const;
  bool member_has_ended() const;
  void settle(Patience& patience);
  ncclResult_t state(const Patience& patience) const;

  Setting setting_;
  Group group_;
  GlobalRank self_;
  std::unique_ptr<Memory> memory_;
  ncclComm_t comm_ = nullptr;
  bool idle_ = false;
  bool abandoned_ = false;
};

}  // namespace reprise
