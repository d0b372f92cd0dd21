// Serves CUDA devices to libreprise_c.so.
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "core/base/caught.hpp"
#include "core/c/device_table.hpp"
#include "reprise/device.hpp"
#include "reprise/error.hpp"

namespace reprise::c {
namespace {

struct Served {
  explicit Served(std::shared_ptr<Device> made) : device(std::move(made)) {}
  std::shared_ptr<Device> device;
  std::string name = device->name();
};

Device& device_of(void* served) { return *static_cast<Served*>(served)->device; }

void report(FailureSink* failure, const std::exception& caught) noexcept {
  try {
    const Error error = error_from(caught);
    failure->tell(failure, static_cast<std::uint32_t>(error.code()), error.message().c_str());
  } catch (...) {
    failure->tell(failure, static_cast<std::uint32_t>(Code::kInternal), "out of memory");
  }
}

/// Runs a call. Returns false, and tells why, if it throws.
template <class Call>
bool served(FailureSink* failure, const Call& call) noexcept {
  try {
    call();
    return true;
  } catch (const std::exception& caught) {
    report(failure, caught);
    return false;
  }
}

bool open(std::int32_t index, std::int64_t deadline_ns, void** device, FailureSink* failure) {
  return served(failure, [&] {
    const std::chrono::nanoseconds deadline(deadline_ns);
    *device = std::make_unique<Served>(cuda_device(index, nullptr, deadline)).release();
  });
}

void close(void* served) { delete static_cast<Served*>(served); }

const char* name(void* served) { return static_cast<Served*>(served)->name.c_str(); }

std::uint64_t batch_bytes(void* served) { return device_of(served).batch_bytes(); }

bool gather(void* device, const GatherCopy* copies, std::size_t count, std::uint64_t* event,
            FailureSink* failure) {
  return served(failure, [&] { *event = device_of(device).gather({copies, count}).id; });
}

bool scatter(void* device, const ScatterCopy* copies, std::size_t count, std::uint64_t* event,
             FailureSink* failure) {
  return served(failure, [&] { *event = device_of(device).scatter({copies, count}).id; });
}

bool wait(void* device, std::uint64_t event, FailureSink* failure) {
  return served(failure, [&] { device_of(device).wait({.id = event}); });
}

bool publish(void* device, FailureSink* failure) {
  return served(failure, [&] { device_of(device).publish(); });
}

bool use_stream(void* device, void* stream, FailureSink* failure) {
  return served(failure, [&] { device_of(device).use_stream(stream); });
}

bool reserve(void* device, std::size_t bytes, FailureSink* failure) {
  return served(failure, [&] { device_of(device).reserve(bytes); });
}

bool reaches(void* device, const std::byte* address, bool* reached, FailureSink* failure) {
  return served(failure, [&] { *reached = device_of(device).reaches(address); });
}

bool staging(void* device, std::size_t bytes, std::byte** first, void** owner,
             FailureSink* failure) {
  return served(failure, [&] {
    auto memory = std::make_unique<StagingMemory>(device_of(device).staging(bytes));
    *first = memory->get();
    *owner = memory.release();
  });
}

void release(void* owner) { delete static_cast<StagingMemory*>(owner); }

constexpr DeviceTable kTable = {.struct_size = sizeof(DeviceTable),
                                .copy_size = sizeof(GatherCopy),
                                .version = REPRISE_VERSION,
                                .open = open,
                                .close = close,
                                .name = name,
                                .batch_bytes = batch_bytes,
                                .gather = gather,
                                .scatter = scatter,
                                .wait = wait,
                                .publish = publish,
                                .use_stream = use_stream,
                                .reserve = reserve,
                                .reaches = reaches,
                                .staging = staging,
                                .release = release};

}  // namespace
}  // namespace reprise::c

extern "C" __attribute__((visibility("default"))) const reprise::c::DeviceTable*
reprise_c_cuda_table() {
  return &reprise::c::kTable;
}
