// Defines the calls of CUDA's runtime. All of them lock one mutex, as a driver does.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "core/base/check.hpp"
#include "reprise/error.hpp"
#include "tests/models/cuda/allocations.hpp"
#include "tests/models/cuda/cuda_model.hpp"
#include "tests/models/cuda/driver.hpp"
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
constexpr int kVersion = 13'000;
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
  std::shared_ptr<Queue> queue_of(cudaStream_t stream, int device) {
    if (stream == nullptr) return defaults.at(static_cast<std::size_t>(device));
    if (stream == cudaStreamPerThread) return own_queue(device);
    return is_known(streams, stream) ? stream->queue : nullptr;
  }
  /// The default stream of the calling thread alone.
  std::shared_ptr<Queue> own_queue(int device);

  /// Queues work. The default stream and blocking ones wait for each other.
  void add(const std::shared_ptr<Queue>& queue, Queue::Entry entry) {
    if (captures.contains(queue)) return;  // part of the graph
    const auto& common = defaults.at(static_cast<std::size_t>(queue->device));
    if (queue == common) {
      for (const auto& other : blocking_queues(queue->device)) wait_for(queue, end_of(other));
    } else if (queue->blocking) {
      wait_for(queue, end_of(common));
    }
    queues.add(queue, std::move(entry));
  }
  void wait_for(const std::shared_ptr<Queue>& queue, Place place) {
    if (!reached(place)) queues.add(queue, {.run = {}, .waits_for = std::move(place)});
  }

  /// The queues that the default stream of a device waits for.
  std::vector<std::shared_ptr<Queue>> blocking_queues(int device) const {
    std::vector<std::shared_ptr<Queue>> found;
    for (const cudaStream_t stream : streams) {
      if (stream->queue->device == device && stream->queue->blocking)
        found.push_back(stream->queue);
    }
    for (const auto& [thread, queue] : own_queues) {
      if (queue->device == device) found.push_back(queue);
    }
    return found;
  }
  void fault(std::string what) { faults.push_back(std::move(what)); }

  Settings settings;
  Queues queues;
  Allocations memory = {};
  std::vector<std::shared_ptr<Queue>> defaults = {};
  std::map<std::pair<std::thread::id, int>, std::shared_ptr<Queue>> own_queues = {};
  std::map<std::shared_ptr<Queue>, bool> captures = {};  ///< queues being captured; false if ended
  std::set<std::pair<int, const void*>> kernels = {};    ///< loaded ones, by device
  std::set<std::pair<int, int>> contexts = {};           ///< by process, of a device
  std::vector<cudaStream_t> streams = {};
  std::vector<cudaEvent_t> events = {};
  std::uint64_t calls = 0;
  std::map<std::pair<std::thread::id, std::string>, std::uint64_t> calls_by_name = {};
  std::set<int> broken = {};                  ///< processes all of whose calls fail
  std::map<std::uint64_t, int> current = {};  ///< device of a thread, if callers are set
  std::uint64_t memory_calls = 0;
  bool no_room = false;  ///< true if the next allocation of device memory is to fail
  bool blocks = true;    ///< false once let_go() was called
  bool holds_copies = false;
  std::vector<std::string> faults = {};
};

std::mutex mutex;
std::unique_ptr<Runtime> state;  // NOLINT: a driver is one per process
Callers callers;                 // NOLINT
DeviceWaits waits;               // NOLINT
thread_local int device_of_thread = 0;
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
thread_local cudaError_t last_error = cudaSuccess;

Runtime& runtime() {
  if (!state) state = std::make_unique<Runtime>(Settings{});
  return *state;
}

int process() { return callers.process ? callers.process() : 0; }

/// The current device of the calling thread, as the process numbers its devices.
int& device_index(Runtime& one) {
  return callers.thread ? one.current[callers.thread()] : device_of_thread;
}

/// Returns the devices that the calling process sees.
std::vector<int> visible_devices(const Runtime& one) {
  const auto number = static_cast<std::size_t>(process());
  if (number < one.settings.visible.size()) return one.settings.visible[number];
  std::vector<int> all(static_cast<std::size_t>(one.settings.devices));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Returns the number of the current device on the machine.
int current_device(Runtime& one) {
  return visible_devices(one).at(static_cast<std::size_t>(device_index(one)));
}

/// Notes that a call needs a context on the current device.
void use_context(Runtime& one) { one.contexts.emplace(process(), current_device(one)); }

/// True, and all captures are ended, if the calling thread may not make a call that could wait for
/// the device.
bool breaks_capture(Runtime& one) {
  if (one.captures.empty() || capture_mode == cudaStreamCaptureModeRelaxed) return false;
  for (auto& [queue, valid] : one.captures) valid = false;
  return true;
}

cudaError_t told(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

/// True if this call fails because the settings say so.
bool fails(Runtime& one) {
  ++one.calls;
  if (one.broken.contains(process())) return true;
  if (one.calls != one.settings.failing_call) return false;
  if (one.settings.sticky) one.broken.insert(process());
  return true;
}

/// Waits until no other thread of the process holds the driver's lock. Returns false if the wait
/// has no end.
bool enter_driver(const char* who) {
  if (!waits.is_locked) return true;
  return wait_while(waits.is_locked, std::string(who) + " waits for the driver's lock, which " +
                                         "ncclCommAbort holds until every kernel has ended");
}

/// Runs one call of the runtime. `failure` is what it returns if the settings let it fail. `name`
/// is that of the function which calls this one.
template <class Body>
cudaError_t call(const Body& body, cudaError_t failure = cudaErrorUnknown,
                 const char* name = __builtin_FUNCTION()) {
  if (callers.is_dead && callers.is_dead()) return cudaErrorUnknown;
  if (!enter_driver("a call of CUDA")) return cudaErrorUnknown;
  const std::scoped_lock lock(mutex);
  Runtime& one = runtime();
  ++one.calls_by_name[{std::this_thread::get_id(), name}];
  if (fails(one)) return told(one.broken.contains(process()) ? cudaErrorUnknown : failure);
  one.queues.go_on();
  one.memory.close();
  const cudaError_t result = body(one);
  one.memory.close();
  return told(result);
}

/// Runs a call that blocks until `place_of(runtime)` is reached.
template <class PlaceOf>
cudaError_t blocking_call(const PlaceOf& place_of, const char* name = __builtin_FUNCTION()) {
  Place place;
  bool reached_it = true;
  const cudaError_t begun = call(
      [&](Runtime& one) {
        const std::optional<Place> found = place_of(one);
        if (!found) return cudaErrorInvalidResourceHandle;
        place = *found;
        reached_it = one.queues.run_until(place);
        return cudaSuccess;
      },
      cudaErrorUnknown, name);
  if (begun != cudaSuccess || reached_it) return begun;
  const auto is_missing = [&] {
    const std::scoped_lock lock(mutex);
    return !runtime().queues.run_until(place);
  };
  return wait_while(is_missing, "a call waits for a kernel that never ends") ? cudaSuccess
                                                                             : cudaErrorUnknown;
}

bool is_device(const Runtime& one, int device) {
  return device >= 0 && static_cast<std::size_t>(device) < visible_devices(one).size();
}
int on_machine(const Runtime& one, int device) {
  return visible_devices(one).at(static_cast<std::size_t>(device));
}

/// Allocations, frees and the first launch of a kernel wait for the whole device, as far as a
/// program can tell.
void wait_for_device(Runtime& one, const char* what) {
  if (one.queues.is_stuck(current_device(one))) {
    one.fault(std::string("deadlock: ") + what + " waits for the device, whose work never ends");
  }
  if (waits.awaits_peer && waits.awaits_peer()) {
    one.fault(std::string("deadlock: ") + what +
              " waits for the device, on which a kernel of NCCL waits for a peer");
  }
}

/// Runs a copy that the model has queued.
void copy_now(Runtime& one, int device, std::byte* target, const std::byte* source,
              std::size_t bytes) {
  one.memory.open(device);
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
    if (breaks_capture(one)) return cudaErrorStreamCaptureUnsupported;
    use_context(one);
    wait_for_device(one, "a free");
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
        if (breaks_capture(one)) return cudaErrorStreamCaptureUnsupported;
        use_context(one);
        wait_for_device(one, "an allocation");
        ++one.memory_calls;
        if (kind == Allocations::Kind::kDevice && std::exchange(one.no_room, false)) {
          return cudaErrorMemoryAllocation;
        }
        *made = one.memory.allocate(kind, current_device(one), bytes, one.settings.memory_bytes);
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
  device_of_thread = 0;
  capture_mode = cudaStreamCaptureModeGlobal;
  last_error = cudaSuccess;
}

Settings settings() {
  const std::scoped_lock lock(mutex);
  return runtime().settings;
}

void let_fail(std::uint64_t ahead) {
  const std::scoped_lock lock(mutex);
  runtime().settings.failing_call = runtime().calls + ahead;
}

void let_device_memory_run_out() {
  const std::scoped_lock lock(mutex);
  runtime().no_room = true;
}

void set_callers(Callers those) { callers = std::move(those); }

std::uint64_t calls() {
  const std::scoped_lock lock(mutex);
  return runtime().calls;
}

std::map<std::string, std::uint64_t> calls_by_name(CalledBy threads) {
  const std::scoped_lock lock(mutex);
  std::map<std::string, std::uint64_t> found;
  for (const auto& [caller, count] : runtime().calls_by_name) {
    const bool is_this = caller.first == std::this_thread::get_id();
    if (is_this == (threads == CalledBy::kThisThread)) found[caller.second] += count;
  }
  return found;
}

std::vector<std::string> faults() {
  const std::scoped_lock lock(mutex);
  return runtime().faults;
}

bool wait_while(const std::function<bool()>& condition, const std::string& what) {
  for (std::uint64_t pauses = 0; condition(); ++pauses) {
    if (pauses == kPausesMax || !callers.pause) {
      const std::scoped_lock lock(mutex);
      runtime().fault("deadlock: " + what);
      return false;
    }
    callers.pause();
  }
  return true;
}

Driver driver() {
  Runtime& one = runtime();
  return {one.queues, one.memory, one.settings};
}
int caller_process() { return process(); }
std::uint64_t caller_thread() { return callers.thread ? callers.thread() : 0; }
int caller_device() { return current_device(runtime()); }
bool caller_is_dead() { return callers.is_dead && callers.is_dead(); }
void pause_caller() {
  if (callers.pause) callers.pause();
}
bool call_fails() {
  const std::scoped_lock lock(mutex);
  return fails(runtime());
}
void add_fault(const std::string& what) { runtime().fault(what); }
std::shared_ptr<Queue> queue_of(cudaStream_t stream) {
  return runtime().queue_of(stream, current_device(runtime()));
}
void set_device_waits(DeviceWaits those) { waits = std::move(those); }

std::size_t live_objects() {
  const std::scoped_lock lock(mutex);
  const Runtime& one = runtime();
  return one.streams.size() + one.events.size() + one.memory.count();
}

std::size_t allocations_on(int device) {
  const std::scoped_lock lock(mutex);
  return runtime().memory.count_on(device);
}

void block(void* stream) {
  const std::scoped_lock lock(mutex);
  Runtime& one = runtime();
  one.blocks = true;
  one.add(one.queue_of(static_cast<cudaStream_t>(stream), current_device(one)),
          {.run = {},
           .waits_for = {},
           .touched = {},
           .held = [&one] { return one.blocks; },
           .never_ends = true});
}

void let_go() {
  const std::scoped_lock lock(mutex);
  runtime().blocks = false;
  runtime().holds_copies = false;
}

void hold_copies() {
  const std::scoped_lock lock(mutex);
  runtime().holds_copies = true;
}

void begin_capture(void* stream) {
  const std::scoped_lock lock(mutex);
  Runtime& one = runtime();
  one.captures[one.queue_of(static_cast<cudaStream_t>(stream), current_device(one))] = true;
}

bool end_capture(void* stream) {
  const std::scoped_lock lock(mutex);
  Runtime& one = runtime();
  const auto ended =
      one.captures.extract(one.queue_of(static_cast<cudaStream_t>(stream), current_device(one)));
  return !ended.empty() && ended.mapped();
}

std::set<int> contexts() {
  const std::scoped_lock lock(mutex);
  std::set<int> devices;
  for (const auto& [of, device] : runtime().contexts) {
    if (of == process()) devices.insert(device);
  }
  return devices;
}

std::shared_ptr<Queue> Runtime::own_queue(int device) {
  auto& queue = own_queues[{std::this_thread::get_id(), device}];
  if (!queue) queue = queues.make(device, true);
  return queue;
}

cudaError_t load_kernel(const void* kernel) {
  return call([&](Runtime& one) {
    use_context(one);
    if (!one.settings.has_code) return cudaErrorNoKernelImageForDevice;
    if (one.kernels.emplace(current_device(one), kernel).second) {
      wait_for_device(one, "a kernel that is loaded");
    }
    return cudaSuccess;
  });
}

void require_on_device(const void* address) {
  const std::scoped_lock lock(mutex);
  Runtime& one = runtime();
  if (one.memory.at(address) == nullptr) {
    one.fault("a kernel's table has an address of host memory that is not pinned");
  }
}

std::uint64_t memory_calls() {
  const std::scoped_lock lock(mutex);
  return runtime().memory_calls;
}

cudaError_t queue_kernel(const cudaLaunchConfig_t& config, const void* kernel,
                         std::size_t parameter_bytes, std::function<void()> body) {
  return call([&](Runtime& one) {
    use_context(one);
    const auto queue = one.queue_of(config.stream, current_device(one));
    if (!queue) return cudaErrorInvalidResourceHandle;
    if (queue->device != current_device(one)) return cudaErrorInvalidResourceHandle;
    if (config.gridDim.x == 0 || config.blockDim.x == 0 || config.blockDim.x > 1024) {
      return cudaErrorInvalidConfiguration;
    }
    if (parameter_bytes > kParameterBytesMax) return cudaErrorInvalidValue;
    if (!one.settings.has_code) return cudaErrorNoKernelImageForDevice;
    if (one.kernels.emplace(queue->device, kernel).second) {
      wait_for_device(one, "the first launch of a kernel");
    }
    one.add(queue, {.run =
                        [&one, config, body = std::move(body), device = queue->device] {
                          one.memory.open(device);
                          const auto order = one.settings.schedule == Schedule::kLatest
                                                 ? Threads::kBackwards
                                                 : Threads::kForwards;
                          const std::string wrong =
                              run_grid(config.gridDim, config.blockDim, order, body);
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
    if (one.settings.driver < kVersion) return cudaErrorInsufficientDriver;
    *count = static_cast<int>(visible_devices(one).size());
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call([&](Runtime& one) {
    if (one.settings.driver < kVersion) return cudaErrorInsufficientDriver;
    if (!is_device(one, device)) return cudaErrorInvalidDevice;
    const auto number = static_cast<char>(on_machine(one, device) + 1);
    *properties = {.name = "model of a GPU",
                   .uuid = {{'m', 'o', 'd', 'e', 'l', number}},
                   .totalGlobalMem = one.settings.memory_bytes,
                   .pciBusID = number,
                   .pciDeviceID = 0,
                   .pciDomainID = 0};
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call([&](Runtime& one) {
    if (!is_device(one, device)) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrMultiProcessorCount:
        *value = kProcessors;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMajor:
        *value = 9;
        return cudaSuccess;
      case cudaDevAttrComputeCapabilityMinor:
        *value = 5;
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  const std::scoped_lock lock(mutex);
  *version = runtime().settings.driver;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return call([&](Runtime& one) {
    if (!is_device(one, device)) return cudaErrorInvalidDevice;
    device_index(one) = device;
    use_context(one);
    return cudaSuccess;
  });
}

namespace {

int context_state(int device, unsigned* flags, int* active) {
  const std::scoped_lock lock(mutex);
  *flags = 0;
  *active = runtime().contexts.contains({process(), on_machine(runtime(), device)}) ? 1 : 0;
  return 0;
}

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** found, unsigned /*version*/,
                                             unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* result) {
  const bool known = std::strcmp(symbol, "cuDevicePrimaryCtxGetState") == 0;
  *found = known ? reinterpret_cast<void*>(&context_state) : nullptr;
  *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call([&](Runtime& /*one*/) {
    std::swap(*mode, capture_mode);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call([&](Runtime& one) {
    const auto queue = one.queue_of(stream, current_device(one));
    if (!queue) return cudaErrorInvalidResourceHandle;
    *status = cudaStreamCaptureStatusNone;
    const auto found = one.captures.find(queue);
    if (found != one.captures.end()) {
      *status = found->second ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated;
    } else if (stream == nullptr) {
      for (const auto& other : one.blocking_queues(queue->device)) {
        if (one.captures.contains(other)) return cudaErrorStreamCaptureImplicit;
      }
    }
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  const std::scoped_lock lock(mutex);
  ++runtime().calls_by_name[{std::this_thread::get_id(), "cudaGetDevice"}];
  *device = device_index(runtime());
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
  return std::exchange(last_error,
                       runtime().broken.contains(process()) ? cudaErrorUnknown : cudaSuccess);
}

cudaError_t cudaMalloc(void** made, std::size_t bytes) {
  return allocate(Allocations::Kind::kDevice, made, bytes);
}

cudaError_t cudaFree(void* memory) { return free_memory(Allocations::Kind::kDevice, memory); }

cudaError_t cudaHostAlloc(void** made, std::size_t bytes, unsigned /*flags*/) {
  return allocate(Allocations::Kind::kPinned, made, bytes);
}

cudaError_t cudaFreeHost(void* memory) { return free_memory(Allocations::Kind::kPinned, memory); }

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return call([&](Runtime& one) {
    const Allocations::Allocation* const found = one.memory.at(address);
    *attributes = {.type = cudaMemoryTypeUnregistered, .device = -1, .devicePointer = nullptr};
    if (found != nullptr) {
      attributes->type =
          found->kind == Allocations::Kind::kDevice ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
      const auto visible = visible_devices(one);
      attributes->device = static_cast<int>(
          std::find(visible.begin(), visible.end(), found->device) - visible.begin());
      attributes->devicePointer = const_cast<void*>(address);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes,
                            cudaMemcpyKind /*kind*/, cudaStream_t stream) {
  bool fills_host = false;
  const cudaError_t queued = call([&](Runtime& one) {
    const auto queue = one.queue_of(stream, current_device(one));
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
                    .touched = {{to, bytes}, {from, bytes}},
                    .held = [&one] { return one.holds_copies; }});
    fills_host = one.memory.at(target) == nullptr && !one.queues.run_until(end_of(queue));
    return cudaSuccess;
  });
  return queued == cudaSuccess && fills_host ? cudaStreamSynchronize(stream) : queued;
}

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  return call([&](Runtime& one) {
    const auto queue = one.queue_of(stream, current_device(one));
    if (!queue) return cudaErrorInvalidResourceHandle;
    if (one.memory.at(target) == nullptr || !is_within(one, target, bytes, "target")) {
      return cudaErrorInvalidValue;
    }
    auto* const to = static_cast<std::byte*>(target);
    one.add(queue, {.run =
                        [&one, device = queue->device, to, value, bytes] {
                          one.memory.open(device);
                          std::memset(to, value, bytes);
                        },
                    .waits_for = {},
                    .touched = {{to, bytes}}});
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned flags) {
  return call([&](Runtime& one) {
    *made =
        new CUstream_st{one.queues.make(current_device(one), (flags & cudaStreamNonBlocking) == 0)};
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
  return blocking_call([&](Runtime& one) -> std::optional<Place> {
    const auto queue = one.queue_of(stream, current_device(one));
    return queue ? std::optional(end_of(queue)) : std::nullopt;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return call([&](Runtime& one) {
    const auto queue = one.queue_of(stream, current_device(one));
    if (!queue || !is_known(one.events, event)) return cudaErrorInvalidResourceHandle;
    if (stream == nullptr) {
      one.add(queue, {.run = {}, .waits_for = event->place});  // waits for blocking streams, too
    } else {
      one.wait_for(queue, event->place);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned /*flags*/) {
  return call([&](Runtime& one) {
    *made = new CUevent_st{.device = current_device(one)};
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
    const auto queue = one.queue_of(stream, current_device(one));
    if (!queue || !is_known(one.events, event)) return cudaErrorInvalidResourceHandle;
    if (event->device != queue->device) return cudaErrorInvalidResourceHandle;
    event->place = end_of(queue);
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return blocking_call([&](Runtime& one) {
    return is_known(one.events, event) ? std::optional(event->place) : std::nullopt;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const cudaError_t result = call([&](Runtime& one) {
    if (!is_known(one.events, event)) return cudaErrorInvalidResourceHandle;
    if (breaks_capture(one)) return cudaErrorStreamCaptureUnsupported;
    return one.queues.poll(event->place) ? cudaSuccess : cudaErrorNotReady;
  });
  if (result == cudaErrorNotReady && callers.pause) callers.pause();
  return result;
}
