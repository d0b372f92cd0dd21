#pragma once
// Streams and events of CUDA. No vendor type is named here, so that every folder may include it.

#include <cstdint>
#include <utility>

namespace reprise {

/// A stream, borrowed. Everything that is queued names one; the default stream is not used.
struct CudaStreamRef {
  void* handle = nullptr;  ///< a cudaStream_t
  int device = 0;          ///< that it belongs to
};

/// Makes `device` the one that the calling thread's CUDA calls are about. Cheap if it is already.
void use_cuda_device(int device);

/// A stream that does not wait for the default one. UNSUPPORTED if built without CUDA.
class CudaStream {
 public:
  explicit CudaStream(int device);
  CudaStream(CudaStream&& other) noexcept : ref_(std::exchange(other.ref_, {})) {}
  CudaStream& operator=(CudaStream&&) = delete;
  /// What is queued is still done.
  ~CudaStream();  // NOLINT(performance-trivially-destructible): does nothing in no_cuda.cpp

  CudaStreamRef ref() const { return ref_; }
  /// Blocks until what is queued now is done. What failed in it is thrown.
  void wait() const;

 private:
  CudaStreamRef ref_;
};

/// A place in a stream that others can wait for.
class CudaEvent {
 public:
  enum class Kind : std::uint8_t { kOrder, kTime };

  /// kTime can be measured from, and costs more.
  explicit CudaEvent(int device, Kind kind = Kind::kOrder);
  CudaEvent(CudaEvent&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CudaEvent();  // NOLINT(performance-trivially-destructible): does nothing in no_cuda.cpp

  /// The place behind all that `stream` has queued by now.
  void record(CudaStreamRef stream);
  /// What is queued on `stream` from now on comes after the place. Does not block.
  void hold_back(CudaStreamRef stream) const;
  /// Blocks until the place is reached. What failed before it is thrown.
  void wait() const;
  /// Is the place reached? Does not block.
  bool done() const;
  /// From `earlier`'s place to this one, both reached and of kind kTime.
  std::uint64_t ns_since(const CudaEvent& earlier) const;

 private:
  void* handle_ = nullptr;  ///< a cudaEvent_t
};

}  // namespace reprise
