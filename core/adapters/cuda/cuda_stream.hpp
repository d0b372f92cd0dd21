#pragma once
// CUDA streams and events. Names no vendor types, so that every folder may include it.

#include <cstdint>
#include <utility>

namespace reprise {

/// A borrowed stream. All queued work names its stream; the default stream is not used.
struct CudaStreamRef {
  void* handle = nullptr;  ///< a cudaStream_t
  int device = 0;          ///< device it belongs to
};

/// Makes `device` current for the calling thread's CUDA calls. Cheap if it already is.
void use_cuda_device(int device);

/// A stream that does not wait for the default stream. Throws UNSUPPORTED if built without CUDA.
class CudaStream {
 public:
  explicit CudaStream(int device);
  CudaStream(CudaStream&& other) noexcept : ref_(std::exchange(other.ref_, {})) {}
  CudaStream& operator=(CudaStream&&) = delete;
  /// Lets queued work continue.
  ~CudaStream();  // NOLINT(performance-trivially-destructible): does nothing in no_cuda.cpp

  CudaStreamRef ref() const { return ref_; }
  /// Blocks until the work queued so far is done. Throws if any of it failed.
  void wait() const;

 private:
  CudaStreamRef ref_;
};

/// A point in a stream that others can wait for.
class CudaEvent {
 public:
  enum class Kind : std::uint8_t { kOrder, kTime };

  /// kTime allows measuring from it, and costs more.
  explicit CudaEvent(int device, Kind kind = Kind::kOrder);
  CudaEvent(CudaEvent&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CudaEvent();  // NOLINT(performance-trivially-destructible): does nothing in no_cuda.cpp

  /// Sets the point after everything queued on `stream` so far.
  void record(CudaStreamRef stream);
  /// Makes work queued on `stream` from now on run after the point. Does not block.
  void hold_back(CudaStreamRef stream) const;
  /// Blocks until the point is reached. Throws if work before it failed.
  void wait() const;
  /// True if the point has been reached. Does not block.
  bool done() const;
  /// Returns the time since `earlier`; both points must be reached and of kind kTime.
  std::uint64_t ns_since(const CudaEvent& earlier) const;

 private:
  void* handle_ = nullptr;  ///< a cudaEvent_t
};

}  // namespace reprise
