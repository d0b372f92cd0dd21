#include "sim/cuda/cuda_processor.hpp"

#include <limits>
#include <map>
#include <utility>

#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/cuda/kernel_result.hpp"
#include "core/geometry/strided_copy.hpp"
#include "sim/cuda/element_kernels.hpp"

namespace reprise::sim {
namespace {

/// Reuses freed device memory for requests of the same size. All work is on one stream, so new work
/// on reused memory runs after the earlier work on it.
class MemoryPool {
 public:
  explicit MemoryPool(int device) : device_(device) {}

  ArrayMemory take(std::size_t bytes) {
    auto found = free_.find(bytes);
    if (found == free_.end()) found = free_.emplace(bytes, DeviceMemory(device_, bytes));
    auto* const memory = new DeviceMemory(std::move(found->second));
    free_.erase(found);
    return {memory->data(), [this, memory](std::byte*) {
              const std::unique_ptr<DeviceMemory> owned(memory);
              free_.emplace(owned->size(), std::move(*owned));
            }};
  }

 private:
  int device_;
  std::multimap<std::size_t, DeviceMemory> free_;
};

class CudaProcessor final : public Processor {
 public:
  explicit CudaProcessor(CudaDevice& device)
      : device_(device), pool_(stream().device), done_(stream().device) {}

  bool host_memory() const override { return false; }

  ArrayMemory allocate(std::size_t bytes) override { return pool_.take(bytes); }

  void copy_in(ByteSpan host, std::byte* to) override {
    copy_bytes(stream(), host.data(), to, host.size());
    wait();  // after this call, the caller may change the host bytes
  }
  void copy_out(const std::byte* from, MutableByteSpan host) override {
    copy_bytes(stream(), from, host.data(), host.size());
    wait();
  }
  void copy(std::span<const BoxCopy> copies) override {
    for (const auto& copy : copies) {
      queue_copy(stream(),
                 strided_copy(copy.source, copy.target, copy.extents, copy.element_bytes));
    }
  }

  void run(std::span<const ElementMap> over, const ElementWork& work) override {
    for (const auto& map : over) queue_work(stream(), map, work);
  }

  Sums sum(std::span<const ElementMap> over, const ElementTerm& term) override {
    Sums* const sums = device_.result().begin(stream(), Sums{});
    for (const auto& map : over) queue_sum(stream(), map, term, sums);
    return device_.result().end<Sums>(stream());
  }

  std::optional<std::int64_t> first(std::span<const ElementMap> over,
                                    const StaleWeight& stale) override {
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
    std::int64_t* const found = device_.result().begin(stream(), kNone);
    std::int64_t before = 0;
    for (const auto& map : over) {
      queue_search(stream(), map, stale, before, found);
      before += map.elements;
    }
    const auto ordinal = device_.result().end<std::int64_t>(stream());
    return ordinal == kNone ? std::nullopt : std::optional(ordinal);
  }

 private:
  CudaStreamRef stream() const { return device_.compute_stream(); }
  void wait() {
    done_.record(stream());
    done_.wait(device_.patience());
  }

  CudaDevice& device_;
  MemoryPool pool_;
  CudaEvent done_;
};

}  // namespace

std::unique_ptr<Processor> make_cuda_processor(CudaDevice& device) {
  return std::make_unique<CudaProcessor>(device);
}

}  // namespace reprise::sim
