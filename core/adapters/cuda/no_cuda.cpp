// Replaces the rest of this folder in builds without CUDA.
#include "core/adapters/cuda/cuda_compare.hpp"
#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/cuda/cuda_stream.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

[[noreturn]] void no_cuda() {
  throw Error(Code::kUnsupported,
              "built without CUDA; install its toolkit with nvcc and build again");
}

}  // namespace

std::vector<std::string> cuda_devices() { return {}; }

std::string cuda_why_none() { return {}; }

std::string cuda_version() { return {}; }

CudaIdentity cuda_identity(const std::string& /*node*/, int /*index*/) { no_cuda(); }

std::ostream& operator<<(std::ostream& out, const CudaIdentity& identity) {
  return out << identity.node << ':' << identity.index;
}

std::string capability_of(int /*device*/) { no_cuda(); }

bool is_per_thread(CudaStreamRef /*stream*/) { no_cuda(); }
bool is_being_captured(CudaStreamRef /*stream*/) { no_cuda(); }
CurrentDevice::CurrentDevice(int /*device*/) { no_cuda(); }
CurrentDevice::~CurrentDevice() = default;
CudaScope::CudaScope(int device) : current_(device) { no_cuda(); }
CudaScope::~CudaScope() = default;

CudaStream::CudaStream(int /*device*/) { no_cuda(); }
CudaStream::~CudaStream() = default;

CudaEvent::CudaEvent(int /*device*/) { no_cuda(); }
CudaEvent::~CudaEvent() = default;
void CudaEvent::record(CudaStreamRef /*stream*/) { no_cuda(); }
void CudaEvent::hold_back(CudaStreamRef /*stream*/) const { no_cuda(); }
void CudaEvent::wait(const CudaPatience& /*patience*/) const { no_cuda(); }
bool CudaEvent::done() const { no_cuda(); }

DeviceMemory::DeviceMemory(int /*device*/, std::size_t /*bytes*/) { no_cuda(); }
DeviceMemory::~DeviceMemory() = default;

PinnedMemory::PinnedMemory(int /*device*/, std::size_t /*bytes*/) { no_cuda(); }
PinnedMemory::~PinnedMemory() = default;

bool kernels_reach(const std::byte* /*address*/, int /*device*/) { no_cuda(); }
void copy_bytes(CudaStreamRef /*stream*/, const std::byte* /*source*/, std::byte* /*target*/,
                std::size_t /*bytes*/) {
  no_cuda();
}
void fill_bytes(CudaStreamRef /*stream*/, std::byte* /*target*/, std::byte /*value*/,
                std::size_t /*bytes*/) {
  no_cuda();
}

struct CudaDevice::State {};
// NOLINTNEXTLINE(performance-unnecessary-value-param): the other implementation keeps it
CudaDevice::CudaDevice(const std::string& /*node*/, int /*index*/, CudaPatience /*patience*/) {
  no_cuda();
}
CudaDevice::CudaDevice(const std::string& /*node*/, CudaStreamRef /*compute*/,
                       CudaPatience /*patience*/) {  // NOLINT(performance-unnecessary-value-param)
  no_cuda();
}
CudaDevice::~CudaDevice() = default;
const CudaIdentity& CudaDevice::identity() const { no_cuda(); }
CudaStreamRef CudaDevice::compute_stream() const { no_cuda(); }
KernelResult& CudaDevice::result() { no_cuda(); }
const CudaPatience& CudaDevice::patience() const { no_cuda(); }
bool CudaDevice::abandoned() const { no_cuda(); }
std::string CudaDevice::name() const { no_cuda(); }
DeviceEvent CudaDevice::gather(std::span<const GatherCopy> /*copies*/) { no_cuda(); }
DeviceEvent CudaDevice::scatter(std::span<const ScatterCopy> /*copies*/) { no_cuda(); }
void CudaDevice::wait(DeviceEvent /*event*/) { no_cuda(); }
void CudaDevice::publish() { no_cuda(); }
void CudaDevice::use_stream(void* /*stream*/) { no_cuda(); }
void CudaDevice::reserve(std::size_t /*bytes*/) { no_cuda(); }
StagingMemory CudaDevice::staging(std::size_t /*bytes*/) { no_cuda(); }
bool CudaDevice::reaches(const std::byte* /*address*/) const { no_cuda(); }
std::uint64_t CudaDevice::batch_bytes() const { no_cuda(); }

Comparison compare_on_device(CudaDevice& /*device*/, DType /*dtype*/, const std::byte* /*left*/,
                             const std::byte* /*right*/, std::int64_t /*elements*/) {
  no_cuda();
}

std::shared_ptr<Device> cuda_device(int /*index*/, void* /*stream*/,
                                    std::chrono::nanoseconds /*deadline*/) {
  no_cuda();
}

}  // namespace reprise
