#include "core/adapters/cuda/cuda_device.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "core/adapters/cuda/copy_batches.hpp"
#include "core/adapters/cuda/kernel_result.hpp"
#include "core/adapters/cuda/pinned_pool.hpp"
#include "core/base/caught.hpp"
#include "core/base/check.hpp"
#include "core/base/keep_for_ever.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

/// Contiguous copies of at least this size use a copy engine instead of a kernel. At this size, the
/// engine is as fast as a kernel, and it occupies no multiprocessors.
constexpr std::int64_t kLargeBytes = std::int64_t{512} << 10U;

/// Copying a batch of this size takes half a millisecond at 50 GB/s. Compared with that, the
/// overhead of about 10 us per wait is negligible.
constexpr std::uint64_t kBatchBytes = std::uint64_t{32} << 20U;

/// A batch of copies is queued when it has this many bytes, so that the device begins early. A load
/// collects them as it reads files, more slowly than the bus moves them. A save has them at once,
/// for tensors of 64 KiB about twice as fast as the bus. So each batch of a save may have twice the
/// bytes of the one before, up to a limit: fewer calls, and the device still has work.
constexpr std::int64_t kScattered = std::int64_t{4} << 20U;
constexpr std::int64_t kGathered = std::int64_t{32} << 20U;
constexpr std::int64_t kGatheredMost = std::int64_t{128} << 20U;

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

/// Holds what a device has, and the order of its copies.
struct CudaDevice::State {
  using Kind = CopyBatches::Kind;

  /// There are two ways of copying: by kernels, and by a copy engine. Neither waits for the other,
  /// unless the kind of copies changes.
  struct Way {
    explicit Way(int device) : copies(device), scattered(device) {}

    CudaStream copies;
    CudaEvent scattered;  ///< the end of the latest scatters
  };

  State(const std::string& node, int index, std::optional<CudaStreamRef> given, CudaPatience waits)
      : identity(cuda_identity(node, index)),
        name(node + ":" + std::to_string(index)),
        patience(std::move(waits)),
        own(given ? std::nullopt : std::optional<CudaStream>(std::in_place, index)),
        compute(given ? *given : own->ref()),
        kernels(index),
        engine(index),
        computed(index),
        arrived(index),
        pool(PinnedPool::create(index)),
        result(index, patience) {
    require_deadline(patience.deadline_ns);
    load_copy_kernels(index);
  }

  /// Makes copies of the way wait for the work queued on `compute` so far.
  void after_compute(Way& way) {
    // The legacy default stream waits for all blocking streams before an action such as this one,
    // and so for the job's work if that uses the default stream of its thread. Whether a record is
    // such an action is not documented.
    if (compute.handle == nullptr) computed.hold_back(compute);
    computed.record(compute);
    computed.hold_back(way.copies.ref());
  }

  /// Records the end of all copies that are queued. Later ones of the engine wait for it.
  void record_all() {
    arrived.record(kernels.copies.ref());
    arrived.hold_back(engine.copies.ref());
    arrived.record(engine.copies.ref());
  }

  /// Says which thread queues copies: the one that computes, or any. A stream that is another one
  /// on each thread can be waited for only by the first.
  enum class Caller : std::uint8_t { kJob, kAny };

  /// Queues what was collected. If that fails, drops it and remembers why, so that no later launch
  /// writes to memory which its caller has given up. Some of the copies may then still run.
  void flush(Caller caller) {
    CopyBatch* const collected = batches.collected();
    if (collected == nullptr || failed) return;
    try {
      const CurrentDevice current(identity.index);
      const CopyBatch::Ways ways = collected->ways();
      if (ways.kernels && (caller == Caller::kJob || !per_thread)) after_compute(kernels);
      collected->queue(kernels.copies.ref(), engine.copies.ref());
      if (batches.kind() == Kind::kScatters) {
        if (ways.kernels) kernels.scattered.record(kernels.copies.ref());
        if (ways.engine) engine.scattered.record(engine.copies.ref());
        published = false;
      }
    } catch (const std::exception& caught) {
      fail(error_from(caught));
      return;
    }
    batches.enqueue();
  }

  /// Remembers why copies could not be queued, and the end of those that were.
  void fail(const Error& why) noexcept {
    {
      const std::scoped_lock lock(trust);
      failed = why;
    }
    try {
      const CurrentDevice current(identity.index);
      record_all();
      dropped = true;
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): `why` is told
    }
  }

  void start(const StridedCopy& copy, bool pinned) {
    // A large copy needs an open batch too: its event counts as reached when the batch is done.
    CopyBatch& batch = batches.open(kind);
    if (!goes_at_once(copy)) return batch.add(copy);
    const CudaScope scope(identity.index);
    require_no_capture();  // the job may have begun one since the batch was opened
    after_compute(engine);
    if (!pinned) until_copies_arrive();
    batch.count(copy.run_bytes);  // full soon, so that few later copies share its end
    // May tell an error of earlier work although it has queued the copy.
    copy_bytes(engine.copies.ref(), copy.source, copy.target,
               static_cast<std::size_t>(copy.run_bytes));
  }

  /// Waits for all copies that are queued. A copy to or from memory that is not pinned would block
  /// in the driver until then, without a deadline.
  void until_copies_arrive() {
    record_all();
    with_patience([this] { return arrived.done(); });
  }

  /// Throws if the job captures its stream: a copy would become part of the graph and not run. What
  /// is collected is then made only for a caller who waits for it after the capture. Copies by
  /// engines run already; these end first, because their memory may be freed next.
  void require_no_capture() {
    const CurrentDevice current(identity.index);
    if (!is_being_captured(compute)) return;
    batches.set_refused(!failed);
    const CopyBatch* const collected = batches.collected();
    if (collected != nullptr && collected->ways().engine) {
      const CudaScope scope(identity.index);
      until_copies_arrive();
    }
    throw Error(Code::kUsage, "device " + name +
                                  ": the job's stream is being captured for a CUDA graph; save and "
                                  "load before or after the capture");
  }

  /// Pinning memory and launching a kernel for the first time may wait for the whole device,
  /// without a deadline. So this waits for what the job and this device have queued first, with
  /// one.
  void until_idle() {
    require_trusted();
    require_no_capture();
    after_compute(kernels);
    until_copies_arrive();
  }

  StagingMemory pinned_memory(std::size_t bytes) {
    if (StagingMemory kept = pool->take_kept(bytes)) return kept;
    const CudaScope scope(identity.index);
    until_idle();
    return pool->take(bytes);
  }

  /// Returns a view of the same shape in pinned memory, which lives until the batch is done.
  StridedView pinned_view(const Dims& extents, const Dims& strides, std::size_t element_bytes) {
    const Packing packing = packing_of(extents, strides);
    const auto bytes = static_cast<std::size_t>(volume(packing.extents)) * element_bytes;
    StagingMemory memory = pinned_memory(bytes);
    std::byte* const data = memory.get();
    batches.open(kind).keep(std::move(memory));
    return {data, packing.strides};
  }

  bool reaches(const std::byte* host, const Dims& extents, const Dims& strides,
               std::size_t element_bytes) const {
    return pool->holds(host, span_bytes(extents, strides, element_bytes));
  }

  bool is_on_device(const std::byte* address) const {
    const CurrentDevice current(identity.index);
    return kernels_reach(address, identity.index);
  }

  void gather(const GatherCopy& copy) {
    const StridedCopy straight =
        strided_copy(copy.device, copy.host, copy.extents, copy.element_bytes);
    if (straight.runs == 0) return;
    const bool reached =
        reaches(copy.host.data, copy.extents, copy.host.strides, copy.element_bytes);
    if (reached || goes_at_once(straight)) return start(straight, reached);
    const StridedView pinned = pinned_view(copy.extents, copy.host.strides, copy.element_bytes);
    start(strided_copy(copy.device, pinned, copy.extents, copy.element_bytes), true);
    batches.open(kind).deliver_later(
        {{pinned.data, pinned.strides}, copy.host, copy.extents, copy.element_bytes});
  }

  void scatter(const ScatterCopy& copy) {
    const StridedCopy straight =
        strided_copy(copy.host, copy.device, copy.extents, copy.element_bytes);
    if (straight.runs == 0) return;
    const bool reached =
        reaches(copy.host.data, copy.extents, copy.host.strides, copy.element_bytes) ||
        is_on_device(copy.host.data);
    if (reached || goes_at_once(straight)) return start(straight, reached);
    const Packing packing = packing_of(copy.extents, copy.host.strides);
    const StridedView pinned = pinned_view(copy.extents, copy.host.strides, copy.element_bytes);
    copy_strided(copy.host, pinned, packing.extents, copy.element_bytes);
    start(
        strided_copy({pinned.data, pinned.strides}, copy.device, copy.extents, copy.element_bytes),
        true);
  }

  std::int64_t collected_max() const { return kind == Kind::kScatters ? kScattered : gathered_max; }

  /// Takes all copies of one gather() or scatter(). If one of them fails, none stays pending. Calls
  /// nothing of CUDA if they only join those that were collected before.
  template <class Copy>
  DeviceEvent call(std::span<const Copy> all, Kind what, void (State::*one)(const Copy&)) {
    if (!amid || what != kind) require_no_capture();
    batches.give_up_refused();
    amid = true;
    try {
      if (what != kind) flush(Caller::kJob);
      require_trusted();
      if (what != kind && batches.any_queued()) {
        const CurrentDevice current(identity.index);
        record_all();
        arrived.hold_back(kernels.copies.ref());
      }
      kind = what;
      for (const auto& copy : all) {
        (this->*one)(copy);
        const CopyBatch* const collected = batches.collected();
        if (collected != nullptr && collected->full(collected_max())) {
          flush(Caller::kJob);
          gathered_max = std::min(2 * gathered_max, kGatheredMost);
        }
        require_trusted();
      }
      // Another thread may queue what is collected.
      if (per_thread && batches.collected() != nullptr) {
        const CurrentDevice current(identity.index);
        after_compute(kernels);
      }
    } catch (...) {
      amid = false;
      drain();
      throw;
    }
    return {.id = batches.last_event()};
  }

  /// Notes that the caller collects no more, as far as this device knows.
  void end_of_calls() {
    amid = false;
    gathered_max = kGathered;
  }

  void publish() {
    require_trusted();
    end_of_calls();
    if (batches.collected() == nullptr && published) return;
    require_no_capture();
    batches.give_up_refused();
    flush(Caller::kJob);
    require_trusted();
    if (published) return;
    const CurrentDevice current(identity.index);
    kernels.scattered.hold_back(compute);
    engine.scattered.hold_back(compute);
    published = true;
  }

  void drain() noexcept {
    try {
      require_patience();
      const CudaScope scope(identity.index);
      batches.give_up_refused();
      flush(Caller::kAny);
      const CopyBatches::Ends ends = ends_of(batches.last_event());
      with_patience([&ends] { return ends.reached(); });
      batches.finish(batches.last_event());
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): another error is reported
    }
  }

  /// Returns the ends of all copies up to `event` that run.
  CopyBatches::Ends ends_of(std::uint64_t event) const {
    CopyBatches::Ends ends = batches.ends_of(event);
    if (dropped) ends.dropped = &arrived;
    return ends;
  }

  void wait(std::uint64_t event) {
    CopyBatches::Ends ends;
    {
      const std::scoped_lock lock(mutex);
      require_patience();
      CHECK(event <= batches.last_event(), event);
      // Other threads wait for earlier batches while the caller collects.
      if (event == batches.last_event()) end_of_calls();
      if (batches.gave_up(event)) {
        throw Error(Code::kUsage, "device " + name +
                                      ": these copies were not made, because the job's stream was "
                                      "being captured for a CUDA graph");
      }
      if (batches.collected_by(event)) {
        require_no_capture();
        flush(Caller::kAny);
      }
      if (!batches.queued_by(event) && !dropped) return require_trusted();
      ends = ends_of(event);
    }
    {
      const CudaScope scope(identity.index);
      with_patience([this, &ends] {
        require_patience();
        return ends.reached();
      });
    }
    ends = {};
    {
      const std::scoped_lock lock(mutex);
      batches.finish(event);
    }
    require_trusted();
  }

  /// Calls `done` until it returns true or patience runs out; the device is then given up.
  void with_patience(const std::function<bool()>& done) {
    try {
      patience.until(done, "copies of device " + name);
    } catch (const Error& error) {
      if (error.code() == Code::kDeadline || error.code() == Code::kPeerFailed) give_up(error);
      throw;
    }
  }
  void give_up(const Error& error) {
    const std::scoped_lock lock(trust);
    if (!given_up) given_up = error;
  }
  /// Throws if the device was given up: nobody waits for it any more.
  void require_patience() {
    const std::scoped_lock lock(trust);
    if (given_up) throw Error(*given_up);
  }
  /// Throws if new copies can't be trusted.
  void require_trusted() {
    require_patience();
    const std::scoped_lock lock(trust);
    if (failed) throw Error(*failed);
  }

  /// Waits for queued copies, because their memory is about to be freed. Copies that are not queued
  /// yet are never made: nobody waited for them, so their memory may be gone. False if the queued
  /// ones do not end.
  bool ended() noexcept {
    try {
      const std::scoped_lock lock(mutex);
      const CudaScope scope(identity.index);
      after_compute(kernels);  // what is freed next waits for the whole device
      record_all();
      if (arrived.done()) return true;
      require_patience();
      with_patience([this] { return arrived.done(); });
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no caller is left to tell
    }
    const std::scoped_lock lock(trust);
    return !given_up;
  }

  CudaIdentity identity;
  std::string name;
  CudaPatience patience;
  std::mutex trust;
  std::optional<Error> given_up = {};  ///< why the device was given up; needs `trust`
  std::optional<Error> failed = {};    ///< why copies could not be queued; needs `trust`
  /// Every other member below is used by one thread at a time, which holds this. Lock it first.
  std::mutex mutex;
  /// The device's own compute stream; empty if the job supplied a stream.
  std::optional<CudaStream> own;
  CudaStreamRef compute;
  const CudaStreamRef first = compute;  ///< the stream with which the device was made
  bool per_thread = is_per_thread(compute);
  Way kernels;
  Way engine;
  CudaEvent computed;
  CudaEvent arrived;  ///< the end of all copies, when somebody asked for it
  std::shared_ptr<PinnedPool> pool;
  KernelResult result;
  CopyBatches batches{identity.index};
  Kind kind = Kind::kGathers;  ///< of the latest copies
  /// True between two calls that collect copies. The job does not begin a capture there.
  bool amid = false;
  std::int64_t gathered_max = kGathered;  ///< bytes of the next batch of a save, at most
  bool published = true;                  ///< false if `compute` does not wait for all scatters yet
  bool dropped = false;  ///< true if `arrived` is the end of a batch that was not queued whole
};

CudaDevice::CudaDevice(const std::string& node, int index, CudaPatience patience)
    : state_(std::make_unique<State>(node, index, std::nullopt, std::move(patience))) {}
CudaDevice::CudaDevice(const std::string& node, CudaStreamRef compute, CudaPatience patience)
    : state_(std::make_unique<State>(node, compute.device, compute, std::move(patience))) {}
CudaDevice::~CudaDevice() {
  if (!state_->ended()) keep_for_ever(std::move(state_));
}

const CudaIdentity& CudaDevice::identity() const { return state_->identity; }
CudaStreamRef CudaDevice::compute_stream() const { return state_->compute; }
KernelResult& CudaDevice::result() { return state_->result; }
const CudaPatience& CudaDevice::patience() const { return state_->patience; }

bool CudaDevice::abandoned() const {
  const std::scoped_lock lock(state_->trust);
  return state_->given_up.has_value();
}

std::string CudaDevice::name() const { return state_->name; }

DeviceEvent CudaDevice::gather(std::span<const GatherCopy> copies) {
  const std::scoped_lock lock(state_->mutex);
  return state_->call(copies, State::Kind::kGathers, &State::gather);
}

DeviceEvent CudaDevice::scatter(std::span<const ScatterCopy> copies) {
  const std::scoped_lock lock(state_->mutex);
  return state_->call(copies, State::Kind::kScatters, &State::scatter);
}

void CudaDevice::publish() {
  const std::scoped_lock lock(state_->mutex);
  state_->publish();
}

void CudaDevice::use_stream(void* stream) {
  const std::scoped_lock lock(state_->mutex);
  const CudaStreamRef next =
      stream == nullptr ? state_->first : CudaStreamRef{stream, state_->identity.index};
  if (next.handle == state_->compute.handle) return;
  state_->require_trusted();
  state_->batches.give_up_refused();
  state_->flush(State::Caller::kJob);  // what was collected belongs to the stream before
  state_->require_trusted();
  state_->compute = next;
  state_->end_of_calls();
  state_->published = false;
  state_->per_thread = is_per_thread(next);
}

void CudaDevice::reserve(std::size_t bytes) {
  const std::scoped_lock lock(state_->mutex);
  const CudaScope scope(state_->identity.index);
  state_->until_idle();
  state_->pool->reserve(bytes);
}

void CudaDevice::wait(DeviceEvent event) { state_->wait(event.id); }

bool CudaDevice::reaches(const std::byte* address) const {
  return kernels_reach(address, state_->identity.index);
}

StagingMemory CudaDevice::staging(std::size_t bytes) {
  state_->require_trusted();
  if (StagingMemory kept = state_->pool->take_kept(bytes)) return kept;
  const std::scoped_lock lock(state_->mutex);
  return state_->pinned_memory(bytes);
}

std::uint64_t CudaDevice::batch_bytes() const { return kBatchBytes; }

}  // namespace reprise
