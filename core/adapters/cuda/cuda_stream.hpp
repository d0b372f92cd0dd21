#pragma once
// Wraps CUDA streams and events. This header contains no vendor types, so every folder may include
// it.

#include <cstdint>
#include <utility>

#include "core/adapters/cuda/cuda_patience.hpp"

namespace reprise {

/// A borrowed stream. Work is always queued on an explicit stream; the default stream is not used.
struct CudaStreamRef {
  void* handle = nullptr;  ///< a cudaStream_t
  int device = 0;          ///< device of the stream
};

/// True if the handle means another stream on each thread (cudaStreamPerThread).
bool is_per_thread(CudaStreamRef stream);

/// True if the job is capturing a CUDA graph with this stream, or with a stream that the legacy
/// default stream would wait for. Work that is queued on it now does not run.
bool is_being_captured(CudaStreamRef stream);

/// For its lifetime, `device` is current on this thread. Afterwards the earlier device is current
/// again, unless this process does not use it: that would create a context on it, which takes
/// hundreds of MB of its memory.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();  // NOLINT(performance-trivially-destructible): does nothing in no_cuda.cpp

 private:
  int before_ = 0;
  int device_ = 0;
};

/// The same, and this thread's calls don't disturb a graph that the job captures on another thread:
/// in capture mode "global", a query, an allocation, a free or a copy of memory that is not pinned
/// may end the capture, on any thread. Work that is only queued on another stream does not.
class CudaScope {
 public:
  explicit CudaScope(int device);
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;
  ~CudaScope();  // NOLINT(performance-trivially-destructible): does nothing in no_cuda.cpp

 private:
  CurrentDevice current_;
  int capture_mode_ = 0;  ///< a cudaStreamCaptureMode
};

/// A stream that does not wait for the default stream. Throws UNSUPPORTED if built without CUDA.
class CudaStream {
 public:
  explicit CudaStream(int device);
  CudaStream(CudaStream&& other) noexcept : ref_(std::exchange(other.ref_, {})) {}
  CudaStream& operator=(CudaStream&&) = delete;
  /// Does not wait for queued work. That work still runs.
  ~CudaStream();  // NOLINT(performance-trivially-destructible): does nothing in no_cuda.cpp

  CudaStreamRef ref() const { return ref_; }

 private:
  CudaStreamRef ref_;
};

/// Marks a point in a stream. Other streams and the host can wait until all work before this point
/// is done.
class CudaEvent {
 public:
  explicit CudaEvent(int device);
  CudaEvent(CudaEvent&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CudaEvent();  // NOLINT(performance-trivially-destructible): does nothing in no_cuda.cpp

  /// Places the point after all work that has been queued on `stream` so far.
  void record(CudaStreamRef stream);
  /// Makes `stream` wait for the point: work queued on the stream from now on starts only when the
  /// point has been reached. Does not block.
  void hold_back(CudaStreamRef stream) const;
  /// Polls until the point is reached. Throws if work before the point failed, and as
  /// CudaPatience::until does if the point is not reached in time. That work is then still queued.
  void wait(const CudaPatience& patience = {}) const;
  /// True if the point has been reached. Does not block.
  bool done() const;

 private:
  void* handle_ = nullptr;  ///< a cudaEvent_t
};

}  // namespace reprise
