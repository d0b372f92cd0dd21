// Defines the calls of CUDA's runtime. All of them lock one mutex, as a driver does.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/check.hpp"
#include "reprise/error.hpp"
#include "tests/models/cuda/allocations.hpp"
#include "tests/models/cuda/cuda_model.hpp"
#include "tests/models/cuda/queues.hpp"
#include "tests/models/cuda/vendor/cuda_runtime.h"
#include "tests/models/cuda/warp.hpp"

struct CUstream_st {
  std::shared_ptr<reprise::models::Queue> queue;
};
struct CUevent_st {
  int device = 0;
  reprise::models::Place place = {};
};

namespace reprise::models {
namespace {

constexpr std::size_t kParameterBytesMax = 32'764;
constexpr int kProcessors = 2;  // few, so that each thread of a kernel has several elements

template <class Handle>
bool is_known(const std::vector<Handle>& handles, Handle handle) {
  return std::find(handles.begin(), handles.end(), handle) != handles.end();
}

/// The state of the model.
struct Runtime {
  explicit Runtime(const Settings& wanted) : settings(wanted), queues(wanted) {
    for (int device = 0; device < settings.devices; ++device) {
      defaults.push_back(queues.make(device, true));
    }
  }
  // Calls that failed may have left handles.
  ~Runtime() {
    for (const cudaStream_t stream : streams) delete stream;
    for (const cudaEvent_t event : events) delete event;
  }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Returns the queue of a stream; null if there is no such stream. The default stream is that of
  /// the current device.
  std::shared_ptr<Queue> queue_of(cudaStream_t stream, int device) const {
    if (stream == nullptr) return defaults.at(static_cast<std::size_t>(device));
    return is_known(streams, stream) ? stream->queue : nullptr;
  }

  /// Queues work. The default stream and blocking ones wait for each other.
  void add(const std::shared_ptr<Queue>& queue, Queue::Entry entry) {
    const auto& common = defaults.at(static_cast<std::size_t>(queue->device));
    if (queue == common) {
      for (const cudaStream_t stream : streams) {
        const auto& other = stream->queue;
        if (other->device == queue->device && other->blocking) wait_for(queue, end_of(other));
      }
    } else if (queue->blocking) {
      wait_for(queue, end_of(common));
    }
    queues.add(queue, std::move(entry));
  }
  void wait_for(const std::shared_ptr<Queue>& queue, Place place) {
    if (!reached(place)) queues.add(queue, {.run = {}, .waits_for = std::move(place)});
  }

  void fault(std::string what) { faults.push_back(std::move(what)); }

  /// Waits for a place as a call does that returns only then.
  cudaError_t wait_until(const Place& place) {
    if (Queues::is_blocked(place)) {
      fault("a call waits for work that never ends");
      return cudaErrorUnknown;
    }
    queues.run_until(place);
    return cudaSuccess;
  }

  Settings settings;
  Queues queues;
  Allocations memory = {};
  std::vector<std::shared_ptr<Queue>> defaults = {};
  std::vector<cudaStream_t> streams = {};
  std::vector<cudaEvent_t> events = {};
  std::uint64_t calls = 0;
  std::uint64_t memory_calls = 0;
  bool broken = false;
  std::vector<std::string> faults = {};
};

std::mutex mutex;
std::unique_ptr<Runtime> state;  // NOLINT: a driver is one per process
thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

Runtime& runtime() {
  if (!state) state = std::make_unique<Runtime>(Settings{});
  return *state;
}

cudaError_t told(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

/// Runs one call of the runtime. `failure` is what it returns if the settings let it fail.
template <class Body>
cudaError_t call(const Body& body, cudaError_t failure = cudaErrorUnknown) {
  const std::scoped_lock lock(mutex);
  Runtime& one = runtime();
  ++one.calls;
  if (one.broken) return told(cudaErrorUnknown);
  if (one.calls == one.settings.failing_call) {
    one.broken = one.settings.sticky;
    return told(failure);
  }
  one.queues.go_on();
  return told(body(one));
}

bool is_device(const Runtime& one, int device) {
  return device >= 0 && device < one.settings.devices;
}

/// Runs a copy that the model has queued.
void copy_now(const Runtime& one, int device, std::byte* target, const std::byte* source,
              std::size_t bytes) {
  const Allocations::Open open(one.memory, device);
  std::memmove(target, source, bytes);
}

/// True if [address, address + bytes) is in one allocation, or in none that the model knows.
bool is_within(Runtime& one, const void* address, std::size_t bytes, const char* role) {
  const auto* const allocation = one.memory.at(address);
  if (allocation == nullptr) {
    if (!one.memory.is_freed(address)) return true;
    one.fault(std::string("the ") + role + " of a copy is memory that was freed");
    return false;
  }
  const auto* const end = static_cast<const std::byte*>(address) + bytes;
  if (end <= allocation->first + allocation->bytes) return true;
  one.fault(std::string("the ") + role + " of a copy goes beyond its allocation");
  return false;
}

cudaError_t free_memory(Allocations::Kind kind, void* memory) {
  return call([&](Runtime& one) {
    if (memory == nullptr) return cudaSuccess;
    ++one.memory_calls;
    const auto* const allocation = one.memory.at(memory);
    if (allocation != nullptr && one.queues.is_touched(allocation->first, allocation->bytes)) {
      one.fault("memory is freed that queued work uses");
      one.queues.drain(allocation->device);
    }
    return one.memory.free(kind, memory) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t allocate(Allocations::Kind kind, void** made, std::size_t bytes) {
  return call(
      [&](Runtime& one) {
        ++one.memory_calls;
        *made = one.memory.allocate(kind, current_device, bytes, one.settings.memory_bytes);
        return *made == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
      },
      cudaErrorMemoryAllocation);
}

}  // namespace

Schedule schedule_named(const std::string& name) {
  if (name == "eager") return Schedule::kEager;
  if (name == "latest") return Schedule::kLatest;
  if (name == "random") return Schedule::kRandom;
  throw Error(Code::kUsage, "'" + name + "' is no schedule: eager, latest or random");
}

void reset(const Settings& settings) {
  const std::scoped_lock lock(mutex);
  state = std::make_unique<Runtime>(settings);
  current_device = 0;
  last_error = cudaSuccess;
}

std::uint64_t calls() {
  const std::scoped_lock lock(mutex);
  return runtime().calls;
}

std::vector<std::string> faults() {
  const std::scoped_lock lock(mutex);
  return runtime().faults;
}

std::size_t live_objects() {
  const std::scoped_lock lock(mutex);
  const Runtime& one = runtime();
  return one.streams.size() + one.events.size() + one.memory.count();
}

void block(void* stream) {
  const std::scoped_lock lock(mutex);
  Runtime& one = runtime();
  one.add(one.queue_of(static_cast<cudaStream_t>(stream), current_device),
          {.run = {}, .waits_for = {}, .touched = {}, .blocked = true});
}

void let_go() {
  const std::scoped_lock lock(mutex);
  runtime().queues.let_go();
}

std::uint64_t memory_calls() {
  const std::scoped_lock lock(mutex);
  return runtime().memory_calls;
}

cudaError_t queue_kernel(const cudaLaunchConfig_t& config, std::size_t parameter_bytes,
                         std::function<void()> body) {
  return call([&](Runtime& one) {
    const auto queue = one.queue_of(config.stream, current_device);
    if (!queue) return cudaErrorInvalidResourceHandle;
    if (queue->device != current_device) return cudaErrorInvalidResourceHandle;
    if (config.gridDim.x == 0 || config.blockDim.x == 0 || config.blockDim.x > 1024) {
      return cudaErrorInvalidConfiguration;
    }
    if (parameter_bytes > kParameterBytesMax) return cudaErrorInvalidValue;
    one.add(queue, {.run =
                        [&one, config, body = std::move(body), device = queue->device] {
                          const Allocations::Open open(one.memory, device);
                          const std::string wrong = run_grid(config.gridDim, config.blockDim, body);
                          if (!wrong.empty()) one.fault(wrong);
                        },
                    .waits_for = {}});
    return cudaSuccess;
  });
}

}  // namespace reprise::models

using namespace reprise::models;  // NOLINT: the calls below are CUDA's, in no namespace

cudaError_t cudaGetDeviceCount(int* count) {
  return call([&](Runtime& one) {
    *count = one.settings.devices;
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call([&](Runtime& one) {
    if (!is_device(one, device)) return cudaErrorInvalidDevice;
    *properties = {.name = "model of a GPU", .totalGlobalMem = one.settings.memory_bytes};
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call([&](Runtime& one) {
    if (!is_device(one, device)) return cudaErrorInvalidDevice;
    if (attribute != cudaDevAttrMultiProcessorCount) return cudaErrorInvalidValue;
    *value = kProcessors;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13'000;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13'000;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return call([&](Runtime& one) {
    if (!is_device(one, device)) return cudaErrorInvalidDevice;
    current_device = device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "an error of the model";
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "the model lets this call fail";
}

cudaError_t cudaGetLastError() {
  const std::scoped_lock lock(mutex);
  return std::exchange(last_error, runtime().broken ? cudaErrorUnknown : cudaSuccess);
}

cudaError_t cudaMalloc(void** made, std::size_t bytes) {
  return allocate(Allocations::Kind::kDevice, made, bytes);
}

cudaError_t cudaFree(void* memory) { return free_memory(Allocations::Kind::kDevice, memory); }

cudaError_t cudaHostAlloc(void** made, std::size_t bytes, unsigned /*flags*/) {
  return allocate(Allocations::Kind::kPinned, made, bytes);
}

cudaError_t cudaFreeHost(void* memory) { return free_memory(Allocations::Kind::kPinned, memory); }

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes,
                            cudaMemcpyKind /*kind*/, cudaStream_t stream) {
  return call([&](Runtime& one) {
    const auto queue = one.queue_of(stream, current_device);
    if (!queue) return cudaErrorInvalidResourceHandle;
    if (!is_within(one, target, bytes, "target") || !is_within(one, source, bytes, "source")) {
      return cudaErrorInvalidValue;
    }
    auto* const to = static_cast<std::byte*>(target);
    const auto* from = static_cast<const std::byte*>(source);
    // Pageable memory: the runtime takes the source before it returns, and fills the target.
    std::shared_ptr<std::byte[]> taken;
    if (one.memory.at(source) == nullptr) {
      taken = std::make_shared_for_overwrite<std::byte[]>(bytes);
      std::memcpy(taken.get(), from, bytes);
      from = taken.get();
    }
    one.add(queue, {.run = [&one, device = queue->device, to, from, bytes,
                            taken] { copy_now(one, device, to, from, bytes); },
                    .waits_for = {},
                    .touched = {{to, bytes}, {from, bytes}}});
    return one.memory.at(target) == nullptr ? one.wait_until(end_of(queue)) : cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  return call([&](Runtime& one) {
    const auto queue = one.queue_of(stream, current_device);
    if (!queue) return cudaErrorInvalidResourceHandle;
    if (one.memory.at(target) == nullptr || !is_within(one, target, bytes, "target")) {
      return cudaErrorInvalidValue;
    }
    auto* const to = static_cast<std::byte*>(target);
    one.add(queue, {.run =
                        [&one, device = queue->device, to, value, bytes] {
                          const Allocations::Open open(one.memory, device);
                          std::memset(to, value, bytes);
                        },
                    .waits_for = {},
                    .touched = {{to, bytes}}});
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned flags) {
  return call([&](Runtime& one) {
    *made = new CUstream_st{one.queues.make(current_device, (flags & cudaStreamNonBlocking) == 0)};
    one.streams.push_back(*made);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&](Runtime& one) {
    if (!is_known(one.streams, stream)) return cudaErrorInvalidResourceHandle;
    std::erase(one.streams, stream);
    one.queues.forget(stream->queue);
    delete stream;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&](Runtime& one) {
    const auto queue = one.queue_of(stream, current_device);
    if (!queue) return cudaErrorInvalidResourceHandle;
    return one.wait_until(end_of(queue));
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return call([&](Runtime& one) {
    const auto queue = one.queue_of(stream, current_device);
    if (!queue || !is_known(one.events, event)) return cudaErrorInvalidResourceHandle;
    one.wait_for(queue, event->place);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned /*flags*/) {
  return call([&](Runtime& one) {
    *made = new CUevent_st{.device = current_device};
    one.events.push_back(*made);
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&](Runtime& one) {
    if (!is_known(one.events, event)) return cudaErrorInvalidResourceHandle;
    std::erase(one.events, event);
    delete event;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&](Runtime& one) {
    const auto queue = one.queue_of(stream, current_device);
    if (!queue || !is_known(one.events, event)) return cudaErrorInvalidResourceHandle;
    if (event->device != queue->device) return cudaErrorInvalidResourceHandle;
    event->place = end_of(queue);
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&](Runtime& one) {
    if (!is_known(one.events, event)) return cudaErrorInvalidResourceHandle;
    return one.wait_until(event->place);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call([&](Runtime& one) {
    if (!is_known(one.events, event)) return cudaErrorInvalidResourceHandle;
    return one.queues.poll(event->place) ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  return call([&](Runtime& one) {
    if (!is_known(one.events, begin) || !is_known(one.events, end)) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!reached(begin->place) || !reached(end->place)) return cudaErrorNotReady;
    *ms = 0.001F;
    return cudaSuccess;
  });
}
