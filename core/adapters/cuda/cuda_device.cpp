#include "core/adapters/cuda/cuda_device.hpp"

#include <deque>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "core/adapters/cuda/copy_batch.hpp"
#include "core/adapters/cuda/kernel_result.hpp"
#include "core/adapters/cuda/pinned_pool.hpp"
#include "core/base/check.hpp"

namespace reprise {
namespace {

/// Contiguous copies of at least this size use a copy engine instead of a kernel. At this size, the
/// engine is as fast as a kernel, and it occupies no multiprocessors.
constexpr std::int64_t kLargeBytes = std::int64_t{512} << 10U;

/// Copying a batch of this size takes half a millisecond at 50 GB/s. Compared with that, the
/// overhead of about 10 us per wait is negligible.
constexpr std::uint64_t kBatchBytes = std::uint64_t{32} << 20U;

bool goes_at_once(const StridedCopy& copy) {
  return copy.runs == 1 && copy.run_bytes >= kLargeBytes;
}

/// Returns the size in bytes of the memory from the first to the last element of a view.
std::size_t span_bytes(const Dims& extents, const Dims& strides, std::size_t element_bytes) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) last += (extents[d] - 1) * strides[d];
  return (static_cast<std::size_t>(last) + 1) * element_bytes;
}

}  // namespace

/// Events are numbered. Each batch covers a range of these numbers, in the same order:
///
///   events   1 2 3 4 | 5 6 | 7 8 9 ...
///   batches  queued        | open: filled, not queued yet (gathers only)
struct CudaDevice::State {
  struct Batch {
    std::uint64_t first_event = 0;  ///< the first event whose copies are in this batch
    std::unique_ptr<CopyBatch> copies;
  };

  State(const std::string& node, int index, std::optional<CudaStreamRef> given)
      : identity(cuda_identity(node, index)),
        own(given ? std::nullopt : std::optional<CudaStream>(std::in_place, index)),
        compute(given ? *given : own->ref()),
        copies(index),
        computed(index),
        pool(PinnedPool::create(index)),
        result(index) {}

  ~State() {
    try {
      copies.wait();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no caller is left to tell
    }
  }

  CopyBatch& open_batch() {
    if (open.copies) return *open.copies;
    open.first_event = last_event;
    if (spare.empty()) {
      open.copies = std::make_unique<CopyBatch>(identity.index);
    } else {
      open.copies = std::move(spare.back());
      spare.pop_back();
    }
    return *open.copies;
  }

  /// Makes the copy stream wait for the work queued on `compute` so far.
  void after_compute() {
    computed.record(compute);
    computed.hold_back(copies.ref());
  }

  void flush() {
    if (!open.copies) return;
    after_compute();
    open.copies->queue(copies.ref());
    queued.push_back(std::exchange(open, {}));
  }

  void start(const StridedCopy& copy) {
    // A large copy needs an open batch too: its event counts as reached when the batch is done.
    CopyBatch& batch = open_batch();
    if (!goes_at_once(copy)) return batch.add(copy);
    after_compute();
    copy_bytes(copies.ref(), copy.source, copy.target, static_cast<std::size_t>(copy.run_bytes));
    batch.count(copy.run_bytes);  // full soon, so that few later copies share its end
  }

  /// Returns a view of the same shape in pinned memory, which lives until the batch is done.
  StridedView pinned_view(const Dims& extents, const Dims& strides, std::size_t element_bytes) {
    const Packing packing = packing_of(extents, strides);
    StagingMemory memory =
        pool->take(static_cast<std::size_t>(volume(packing.extents)) * element_bytes);
    std::byte* const data = memory.get();
    open_batch().keep(std::move(memory));
    return {data, packing.strides};
  }

  bool reaches(const std::byte* host, const Dims& extents, const Dims& strides,
               std::size_t element_bytes) const {
    return pool->holds(host, span_bytes(extents, strides, element_bytes));
  }

  void gather(const GatherCopy& copy) {
    const StridedCopy straight =
        strided_copy(copy.device, copy.host, copy.extents, copy.element_bytes);
    if (straight.runs == 0) return;
    if (goes_at_once(straight) ||
        reaches(copy.host.data, copy.extents, copy.host.strides, copy.element_bytes)) {
      return start(straight);
    }
    const StridedView pinned = pinned_view(copy.extents, copy.host.strides, copy.element_bytes);
    start(strided_copy(copy.device, pinned, copy.extents, copy.element_bytes));
    open_batch().deliver_later(
        {{pinned.data, pinned.strides}, copy.host, copy.extents, copy.element_bytes});
  }

  void scatter(const ScatterCopy& copy) {
    const StridedCopy straight =
        strided_copy(copy.host, copy.device, copy.extents, copy.element_bytes);
    if (straight.runs == 0) return;
    if (goes_at_once(straight) ||
        reaches(copy.host.data, copy.extents, copy.host.strides, copy.element_bytes)) {
      return start(straight);
    }
    const Packing packing = packing_of(copy.extents, copy.host.strides);
    const StridedView pinned = pinned_view(copy.extents, copy.host.strides, copy.element_bytes);
    copy_strided(copy.host, pinned, packing.extents, copy.element_bytes);
    start(
        strided_copy({pinned.data, pinned.strides}, copy.device, copy.extents, copy.element_bytes));
  }

  /// Queues all copies of one gather() or scatter(). If one of them fails, none stays pending.
  template <class Copy>
  DeviceEvent call(std::span<const Copy> all, void (State::*one)(const Copy&)) {
    ++last_event;
    try {
      for (const auto& copy : all) {
        (this->*one)(copy);
        if (open.copies && open.copies->full()) flush();
      }
    } catch (...) {
      drain();
      throw;
    }
    return {.id = last_event};
  }
  void drain() noexcept {
    try {
      flush();
      wait(last_event);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): another error is reported
    }
  }

  void wait(std::uint64_t event) {
    if (open.copies && open.first_event <= event) flush();
    while (!queued.empty() && queued.front().first_event <= event) {
      queued.front().copies->finish();
      spare.push_back(std::move(queued.front().copies));
      queued.pop_front();
    }
  }

  CudaIdentity identity;
  /// The device's own compute stream; empty if the job supplied a stream.
  std::optional<CudaStream> own;
  CudaStreamRef compute;
  CudaStream copies;
  CudaEvent computed;
  std::shared_ptr<PinnedPool> pool;
  KernelResult result;
  std::uint64_t last_event = 0;
  Batch open;                ///< no batch (null) or one that is not empty
  std::deque<Batch> queued;  ///< oldest batch first
  std::vector<std::unique_ptr<CopyBatch>> spare;
};

CudaDevice::CudaDevice(const std::string& node, int index)
    : state_(std::make_unique<State>(node, index, std::nullopt)) {}
CudaDevice::CudaDevice(const std::string& node, CudaStreamRef compute)
    : state_(std::make_unique<State>(node, compute.device, compute)) {}
CudaDevice::~CudaDevice() = default;

const CudaIdentity& CudaDevice::identity() const { return state_->identity; }
CudaStreamRef CudaDevice::compute_stream() const { return state_->compute; }
KernelResult& CudaDevice::result() { return state_->result; }

std::string CudaDevice::name() const {
  return state_->identity.node + ":" + std::to_string(state_->identity.index);
}

DeviceEvent CudaDevice::gather(std::span<const GatherCopy> copies) {
  use_cuda_device(state_->identity.index);
  return state_->call(copies, &State::gather);
}

DeviceEvent CudaDevice::scatter(std::span<const ScatterCopy> copies) {
  use_cuda_device(state_->identity.index);
  state_->flush();  // queues earlier gathers
  const DeviceEvent event = state_->call(copies, &State::scatter);
  state_->flush();
  if (!state_->queued.empty()) state_->queued.back().copies->hold_back(state_->compute);
  return event;
}

void CudaDevice::wait(DeviceEvent event) {
  CHECK(event.id <= state_->last_event, event.id);
  use_cuda_device(state_->identity.index);
  state_->wait(event.id);
}

StagingMemory CudaDevice::staging(std::size_t bytes) { return state_->pool->take(bytes); }

std::uint64_t CudaDevice::batch_bytes() const { return kBatchBytes; }

}  // namespace reprise
