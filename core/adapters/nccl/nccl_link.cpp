#include "core/adapters/nccl/nccl_link.hpp"

#include <algorithm>
#include <utility>

#include "core/adapters/nccl/nccl_call.hpp"
#include "core/adapters/nccl/rounds.hpp"
#include "core/base/check.hpp"

namespace reprise {
namespace {

// Limit on the number of multiprocessors that NCCL uses. A GPU has about a hundred, and the job
// needs them. A few are enough for the small amount of data sent here, and each one costs buffers
// on the device.
constexpr int kProcessorsMost = 4;

}  // namespace

NcclLink::NcclLink(Setting setting, Group group, GlobalRank self)
    : setting_(std::move(setting)),
      group_(std::move(group)),
      self_(self),
      memory_(std::make_unique<Memory>(setting_.device)) {}

NcclLink::~NcclLink() {
  // Freeing waits for the device, which may in turn wait for another rank.
  if (comm_ != nullptr || abandoned_) static_cast<void>(memory_.release());
}

CallDeadline NcclLink::deadline(std::function<std::string()> describe) const {
  const NcclLimits& limits = setting_.limits;
  return {setting_.clock,
          {.deadline_ns = limits.deadline_ns, .watch = limits.watch},
          group_,
          self_,
          std::move(describe)};
}

bool NcclLink::member_has_failed() const {
  if (setting_.members->warned()) return true;
  PeerWatch* const watch = setting_.limits.watch;
  const auto& members = group_.members();
  return watch != nullptr && std::any_of(members.begin(), members.end(), [&](GlobalRank member) {
           return member != self_ && watch->has_ended(member);
         });
}

// Throws if a call failed. NCCL may report the end of another rank as a failure of this rank's own
// sockets or threads. So if a member has ended or has said that it failed, the code is PEER_FAILED.
void NcclLink::check(ncclResult_t result, const CallDeadline& deadline) const {
  if (!has_failed(result)) return;
  nccl_failed(result, member_has_failed() ? Code::kPeerFailed : code_of(result), deadline);
}

ncclResult_t NcclLink::state(const CallDeadline& deadline) const {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(comm_, &state), deadline);
  check(state, deadline);
  return state;
}

// Throws if a member has said that its part failed: NCCL would wait for it until the deadline.
void NcclLink::require_members(const CallDeadline& deadline) const {
  if (!setting_.members->warned()) return;
  throw Error(Code::kPeerFailed, deadline.describe() + ": a member's GPU or its NCCL has failed",
              {.rank = self_});
}

// Waits until NCCL has queued its work, possibly in a thread of its own. Until then, nothing else
// may be queued on the stream.
void NcclLink::await_queued(CallDeadline& deadline) {
  deadline.until([&] {
    require_members(deadline);
    return state(deadline) != ncclInProgress;
  });
}

void NcclLink::connect(const ncclUniqueId& id, CallDeadline& deadline) {
  const CudaScope scope(setting_.device);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.minCTAs = 1;
  config.maxCTAs = kProcessorsMost;
  check(ncclCommInitRankConfig(&comm_, group_.size(), id, rank().value, &config), deadline);
  await_queued(deadline);
}

void NcclLink::allocate() {
  const CudaScope scope(setting_.device);
  const std::uint64_t sizes = sizeof(std::uint64_t) * static_cast<std::uint64_t>(group_.size());
  const auto size = static_cast<std::size_t>(std::max(setting_.limits.piece_bytes, sizes));
  // Shares of a whole piece that begin at multiples of 16 may end as far behind it.
  const std::size_t on_device = size + kPartAlignment * static_cast<std::size_t>(group_.size());
  memory_->host = PinnedMemory(setting_.device, size);
  memory_->device = DeviceMemory(setting_.device, on_device);
  // Copies and gathers include the gaps between parts and behind shares. The memory is cleared
  // here, because memory checkers report copies of uninitialised memory.
  fill_bytes(memory_->stream.ref(), memory_->device.data(), std::byte{0}, on_device);
}

void NcclLink::await_memory(CallDeadline& deadline) {
  const CudaScope scope(setting_.device);
  memory_->done.record(memory_->stream.ref());
  deadline.until([this] { return memory_->done.done(); });
}

MutableByteSpan NcclLink::staging(std::uint64_t bytes) const {
  CHECK(bytes <= memory_->host.size(), bytes, memory_->host.size());
  return memory_->host.bytes();
}

ByteSpan NcclLink::within_reach(ByteSpan bytes) const {
  const CudaScope scope(setting_.device);
  if (bytes.empty() || kernels_reach(bytes.data(), setting_.device)) return bytes;
  std::copy(bytes.begin(), bytes.end(), staging(bytes.size()).begin());
  return staging(bytes.size()).first(bytes.size());
}

void NcclLink::run(ByteSpan from, std::uint64_t place, std::uint64_t down, const Start& start,
                   CallDeadline& deadline) {
  const CudaScope scope(setting_.device);
  const CudaStreamRef stream = memory_->stream.ref();
  std::byte* const host = memory_->host.data();
  std::byte* const device = memory_->device.data();
  const ByteRange up{place, from.size()};
  CHECK(up.fits(memory_->device.size()), place, from.size());
  CHECK(down <= memory_->host.size(), down);
  copy_bytes(stream, from.data(), device + place, from.size());
  check(start(device, comm_, static_cast<cudaStream_t>(stream.handle)), deadline);
  await_queued(deadline);
  copy_bytes(stream, device, host, down);
  memory_->done.record(stream);
  deadline.until([&] {
    // Throws if NCCL reports a failure. Without this call, the end of another rank would look like
    // a timeout.
    static_cast<void>(state(deadline));
    if (memory_->done.done()) return true;
    require_members(deadline);
    return false;
  });
}

// ncclCommDestroy blocks, but it waits for no other rank. All ranks have already taken part in
// ncclCommFinalize, and await_queued() waited until that was done.
void NcclLink::close(CallDeadline& deadline) {
  check(ncclCommFinalize(comm_), deadline);
  await_queued(deadline);
  check(ncclCommDestroy(std::exchange(comm_, nullptr)), deadline);
  memory_.reset();
}

ncclComm_t NcclLink::abandon() {
  abandoned_ = true;
  return std::exchange(comm_, nullptr);
}

}  // namespace reprise
