#include "core/adapters/cuda/cuda_stream.hpp"

#include "core/adapters/cuda/cuda_call.hpp"

namespace reprise {
namespace {

cudaStream_t stream_of(CudaStreamRef ref) { return static_cast<cudaStream_t>(ref.handle); }
cudaEvent_t event_of(void* handle) { return static_cast<cudaEvent_t>(handle); }

}  // namespace

void use_cuda_device(int device) { check_cuda(cudaSetDevice(device), "cudaSetDevice"); }

CudaStream::CudaStream(int device) : ref_{nullptr, device} {
  use_cuda_device(device);
  cudaStream_t made = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  ref_.handle = made;
}

CudaStream::~CudaStream() {
  if (ref_.handle != nullptr) cudaStreamDestroy(stream_of(ref_));
}

CudaEvent::CudaEvent(int device, Kind kind) {
  use_cuda_device(device);
  cudaEvent_t made = nullptr;
  const unsigned flags = kind == Kind::kTime ? cudaEventDefault : cudaEventDisableTiming;
  check_cuda(cudaEventCreateWithFlags(&made, flags), "cudaEventCreateWithFlags");
  handle_ = made;
}

CudaEvent::~CudaEvent() {
  if (handle_ != nullptr) cudaEventDestroy(event_of(handle_));
}

void CudaEvent::record(CudaStreamRef stream) {
  check_cuda(cudaEventRecord(event_of(handle_), stream_of(stream)), "cudaEventRecord");
}

void CudaEvent::hold_back(CudaStreamRef stream) const {
  check_cuda(cudaStreamWaitEvent(stream_of(stream), event_of(handle_)), "cudaStreamWaitEvent");
}

void CudaEvent::wait(const CudaPatience& patience) const {
  patience.until([this] { return done(); }, "work on a GPU");
}

bool CudaEvent::done() const {
  const cudaError_t result = cudaEventQuery(event_of(handle_));
  if (result == cudaErrorNotReady) return false;
  check_cuda(result, "cudaEventQuery");
  return true;
}

std::uint64_t CudaEvent::ns_since(const CudaEvent& earlier) const {
  float ms = 0;
  check_cuda(cudaEventElapsedTime(&ms, event_of(earlier.handle_), event_of(handle_)),
             "cudaEventElapsedTime");
  return static_cast<std::uint64_t>(static_cast<double>(ms) * 1e6);
}

}  // namespace reprise
