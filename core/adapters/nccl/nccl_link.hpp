#pragma once
// What NCCL has of one communicator, with the memory through which bytes go to it. Included by this
// folder's sources only.

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

/// Bytes go from pinned memory to the device's, NCCL works there in place, and they come back. One
/// communicator at a time has a link. What is queued on the device may go on after a failure, so
/// that a link which failed frees nothing.
class NcclLink {
 public:
  struct Setting {
    Clock& clock;
    NcclLimits limits;
    int device;
  };
  /// Queues one operation, or several in one NCCL group, over `device`, where staging's copy is.
  using Start =
      std::function<ncclResult_t(std::byte* device, ncclComm_t comm, cudaStream_t stream)>;

  /// `self` is a member; memory and stream, but no connection yet.
  NcclLink(Setting setting, Group group, GlobalRank self);
  /// Aborts nothing and frees nothing unless close() came first.
  ~NcclLink();
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  const Group& group() const { return group_; }
  GroupRank rank() const { return *group_.rank_of(self_); }
  GlobalRank self() const { return self_; }
  const NcclLimits& limits() const { return setting_.limits; }
  /// Of a call that begins now; `describe` is asked for its messages.
  Patience patience(std::function<std::string()> describe) const;

  /// Collective over the group, with the id that one member made.
  void connect(const ncclUniqueId& id, Patience& patience);
  /// Pinned memory of at least so many bytes; what it held is lost when it grows.
  MutableByteSpan staging(std::uint64_t bytes);
  /// Collective: takes `up` of staging to the device, does what `start` queues, brings back
  /// [0, down). Returns when all of that is done. Errors as Patience's and check_nccl's;
  /// PEER_FAILED also where NCCL fails otherwise and the watch says that a member has ended.
  void run(ByteRange up, std::uint64_t down, const Start& start, Patience& patience);
  /// Collective: frees NCCL's part and the memory.
  void close(Patience& patience);

  /// Gives up: NCCL's part is told to end, and is not waited for.
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
