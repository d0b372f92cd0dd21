// Tests saves of a job that computes on the default stream of its thread, as one that is compiled
// with per-thread default streams does.
#include <cuda_runtime.h>

#include <memory>
#include <thread>

#include "core/adapters/cuda/cuda_device.hpp"
#include "tests/gpu/gpu.hpp"

namespace reprise {
namespace {

class PerThreadStream : public testing_gpu::OnGpu, public testing::WithParamInterface<bool> {};

// Both are ordered: the legacy default stream waits for the default streams of all threads.
TEST_P(PerThreadStream, a_gather_waits_for_it_by_its_own_name_and_by_the_default) {
  const CudaStreamRef job{cudaStreamPerThread, 0};
  const auto device = cuda_device(0, GetParam() ? cudaStreamPerThread : nullptr);
  constexpr std::size_t kBytes = std::size_t{1} << 26U;  // takes a while to fill
  constexpr std::int64_t kCopied = 64;
  const DeviceMemory state(0, kBytes);
  const StagingMemory staged = device->staging(kCopied);
  const std::byte* const last = state.data() + kBytes - kCopied;
  const GatherCopy copy{{last, {1}}, {staged.get(), {1}}, {kCopied}, 1};
  for (const std::byte round : {std::byte{1}, std::byte{2}, std::byte{3}}) {
    for (int again = 0; again < 20; ++again) fill_bytes(job, state.data(), std::byte{9}, kBytes);
    fill_bytes(job, state.data(), round, kBytes);
    const DeviceEvent event = device->gather({&copy, 1});
    std::thread([&] { device->wait(event); }).join();  // as a save in the background does
    EXPECT_EQ(staged[kCopied - 1], round);
  }
  testing_gpu::wait_for(job);
}

INSTANTIATE_TEST_SUITE_P(Named, PerThreadStream, testing::Bool());

}  // namespace
}  // namespace reprise
