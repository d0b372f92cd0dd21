#pragma once
// NCCL resources of one communicator, with the memory through which its bytes pass. Included only
// by this folder's sources.

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

/// Copies bytes from pinned to device memory, lets NCCL work there in place, and copies them back.
/// One communicator at a time uses a link. Work queued on the device may continue after a failure,
/// so a link that failed frees nothing.
class NcclLink {
 public:
  struct Setting {
    Clock& clock;
    NcclLimits limits;
    int device;
  };
  /// Queues one operation, or several in one NCCL group, on `device`, which has staging's copy.
  using Start =
      std::function<ncclResult_t(std::byte* device, ncclComm_t comm, cudaStream_t stream)>;

  /// `self` must be a member. Creates memory and stream, but no connection yet.
  NcclLink(Setting setting, Group group, GlobalRank self);
  /// Neither aborts nor frees anything, unless close() came first.
  ~NcclLink();
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  const Group& group() const { return group_; }
  GroupRank rank() const { return *group_.rank_of(self_); }
  GlobalRank self() const { return self_; }
  const NcclLimits& limits() const { return setting_.limits; }
  /// Returns the patience of a call that begins now; messages use `describe`.
  Patience patience(std::function<std::string()> describe) const;

  /// Connects with the id created by one member. Collective over the group.
  void connect(const ncclUniqueId& id, Patience& patience);
  /// Returns pinned memory of at least `bytes` bytes; its content is lost when it grows.
  MutableByteSpan staging(std::uint64_t bytes);
  /// Collective. Copies `up` of staging to the device, runs the work that `start` queues, and
  /// copies back [0, down). Returns when everything is done. Throws like Patience and check_nccl;
  /// also PEER_FAILED if NCCL fails otherwise but the watch reports that a member has ended.
  void run(ByteRange up, std::uint64_t down, const Start& start, Patience& patience);
  /// Frees the NCCL part and the memory. Collective.
  void close(Patience& patience);

  /// Gives up: tells NCCL to stop, but does not wait for it.
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
