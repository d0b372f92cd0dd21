#include "core/adapters/cuda/cuda_stream.hpp"

#include "core/adapters/cuda/cuda_call.hpp"

namespace reprise {
namespace {

cudaStream_t stream_of(CudaStreamRef ref) { return static_cast<cudaStream_t>(ref.handle); }
cudaEvent_t event_of(void* handle) { return static_cast<cudaEvent_t>(handle); }

/// cuDevicePrimaryCtxGetState of the driver API, whose library this program does not link.
using ContextState = int (*)(int device, unsigned* flags, int* active);

ContextState find_context_state() {
  constexpr unsigned kSince = 7000;  // the CUDA version that brought it
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  if (cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &found, kSince,
                                       cudaEnableDefault, &result) != cudaSuccess ||
      result != cudaDriverEntryPointSuccess) {
    return nullptr;
  }
  return reinterpret_cast<ContextState>(found);
}

/// True if this process has a context on the device.
bool is_in_use(int device) {
  static const ContextState state_of = find_context_state();
  unsigned flags = 0;
  int active = 0;
  return state_of != nullptr && state_of(device, &flags, &active) == 0 && active != 0;
}

int exchange_capture_mode(int mode) {
  auto exchanged = static_cast<cudaStreamCaptureMode>(mode);
  check_cuda(cudaThreadExchangeStreamCaptureMode(&exchanged),
             "cudaThreadExchangeStreamCaptureMode");
  return exchanged;
}

}  // namespace

bool is_per_thread(CudaStreamRef stream) { return stream_of(stream) == cudaStreamPerThread; }

bool is_being_captured(CudaStreamRef stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t result = cudaStreamIsCapturing(stream_of(stream), &status);
  if (result == cudaErrorStreamCaptureImplicit) {
    static_cast<void>(cudaGetLastError());  // an answer, which a later launch must not report
    return true;
  }
  check_cuda(result, "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

CurrentDevice::CurrentDevice(int device) : device_(device) {
  check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
  if (before_ != device) check_cuda(cudaSetDevice(device), "cudaSetDevice");
}

CurrentDevice::~CurrentDevice() {
  if (before_ != device_ && is_in_use(before_)) cudaSetDevice(before_);
}

CudaScope::CudaScope(int device)
    : current_(device), capture_mode_(exchange_capture_mode(cudaStreamCaptureModeRelaxed)) {}

CudaScope::~CudaScope() {
  auto mode = static_cast<cudaStreamCaptureMode>(capture_mode_);
  cudaThreadExchangeStreamCaptureMode(&mode);
}

CudaStream::CudaStream(int device) : ref_{nullptr, device} {
  const CudaScope scope(device);
  cudaStream_t made = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  ref_.handle = made;
}

CudaStream::~CudaStream() {
  if (ref_.handle != nullptr) cudaStreamDestroy(stream_of(ref_));
}

CudaEvent::CudaEvent(int device) {
  const CudaScope scope(device);
  cudaEvent_t made = nullptr;
  check_cuda(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreateWithFlags");
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

}  // namespace reprise
