#pragma once
// Supports tests that need a GPU. They use the first GPU, and are skipped if there is none. Test
// suites named NoGpu* need no GPU.

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/cuda/cuda_memory.hpp"

namespace reprise::testing_gpu {

/// True if REPRISE_FEW=1, which is set for tools that slow kernels down a hundredfold. Tests then
/// run the same kinds of cases, but with fewer large cases and fewer repetitions.
inline bool few() {
  const char* const value = std::getenv("REPRISE_FEW");
  return value != nullptr && std::string_view(value) == "1";
}

inline std::string no_gpu() { return "no GPU: " + cuda_why_none(); }

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_devices().empty()) GTEST_SKIP() << no_gpu();
    device_ = std::make_unique<CudaDevice>("node7", 0);
  }
  CudaDevice& device() { return *device_; }
  CudaStreamRef compute() { return device_->compute_stream(); }

 private:
  std::unique_ptr<CudaDevice> device_;
};

/// Waits for all work queued on a stream.
inline void wait_for(CudaStreamRef stream) {
  CudaEvent event(stream.device);
  event.record(stream);
  event.wait();
}

/// GPU memory with content that begins `lead` bytes after a 256-byte boundary. Writes and reads of
/// it wait for the work already queued on the compute stream.
class OnDevice {
 public:
  OnDevice(CudaDevice& device, ByteSpan content, std::size_t lead = 0)
      : stream_(device.compute_stream()),
        memory_(stream_.device, lead + content.size()),
        lead_(lead) {
    copy_bytes(stream_, content.data(), data(), content.size());
    wait_for(stream_);
  }
  std::byte* data() const { return memory_.data() + lead_; }
  Bytes read() const {
    Bytes content(memory_.size() - lead_);
    copy_bytes(stream_, data(), content.data(), content.size());
    wait_for(stream_);
    return content;
  }

 private:
  CudaStreamRef stream_;
  DeviceMemory memory_;
  std::size_t lead_;
};

}  // namespace reprise::testing_gpu
