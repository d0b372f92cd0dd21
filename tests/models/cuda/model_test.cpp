// Tests the rules of the model itself, one by one, by CUDA's own calls.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/models/cuda/cuda_model.hpp"
#include "tests/models/cuda/vendor/cuda_runtime.h"

namespace reprise::models {
namespace {

constexpr std::size_t kBytes = 1000;

/// A stream, an event, and memory of both kinds, under the schedule that runs nothing unasked.
class CudaModel : public testing::Test {
 protected:
  void SetUp() override {
    reset({.schedule = Schedule::kLatest});
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
    device_ = allocated(cudaMalloc);
    pinned_ = allocated([](void** made, std::size_t bytes) {
      return cudaHostAlloc(made, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
    });
  }
  void TearDown() override {
    cudaStreamSynchronize(stream_);
    cudaStreamSynchronize(other_);
    cudaFree(device_);
    cudaFreeHost(pinned_);
    cudaEventDestroy(event_);
    cudaStreamDestroy(stream_);
    cudaStreamDestroy(other_);
    EXPECT_EQ(live_objects(), 0U);
    reset({});  // the faults of a test are its own
  }

  template <class Call>
  static std::byte* allocated(const Call& call) {
    void* made = nullptr;
    EXPECT_EQ(call(&made, kBytes), cudaSuccess);
    return static_cast<std::byte*>(made);
  }
  static cudaError_t copy(const std::byte* from, std::byte* to, cudaStream_t stream,
                          std::size_t bytes = kBytes) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
  }
  cudaError_t fill(int value, cudaStream_t stream) {
    return cudaMemsetAsync(device_, value, kBytes, stream);
  }
  void fill_pinned(int value) { std::memset(pinned_, value, kBytes); }
  std::string fault() {
    const auto all = faults();
    return all.empty() ? "none" : all.front();
  }

  cudaStream_t stream_ = nullptr;
  cudaStream_t other_ = nullptr;
  cudaEvent_t event_ = nullptr;
  std::byte* device_ = nullptr;
  std::byte* pinned_ = nullptr;
};

TEST_F(CudaModel, work_runs_only_when_somebody_waits_for_it) {
  fill_pinned(0);
  fill(7, stream_);
  copy(device_, pinned_, stream_);
  EXPECT_EQ(pinned_[kBytes - 1], std::byte{0});
  cudaStreamSynchronize(other_);
  EXPECT_EQ(pinned_[kBytes - 1], std::byte{0}) << "another stream";
  cudaStreamSynchronize(stream_);
  EXPECT_EQ(pinned_[kBytes - 1], std::byte{7});
}

TEST_F(CudaModel, pinned_memory_is_read_when_the_copy_runs_and_other_at_call) {
  std::vector<std::byte> plain(kBytes, std::byte{1});
  copy(plain.data(), device_, stream_);
  plain.assign(kBytes, std::byte{2});
  std::vector<std::byte> seen(kBytes);
  copy(device_, seen.data(), stream_);
  EXPECT_EQ(seen[0], std::byte{1}) << "was taken, and is there when the call returns";
  fill_pinned(3);
  copy(pinned_, device_, stream_);
  fill_pinned(4);
  copy(device_, seen.data(), stream_);
  EXPECT_EQ(seen[0], std::byte{4}) << "was changed too early";
}

TEST_F(CudaModel, an_event_is_its_place_and_a_wait_keeps_the_place_that_it_had) {
  EXPECT_EQ(cudaEventQuery(event_), cudaSuccess) << "never recorded";
  fill(1, stream_);
  cudaEventRecord(event_, stream_);
  cudaStreamWaitEvent(other_, event_);
  fill(2, stream_);
  cudaEventRecord(event_, stream_);
  copy(device_, pinned_, other_);
  cudaStreamSynchronize(other_);
  EXPECT_EQ(pinned_[0], std::byte{1});
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(event_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_), cudaSuccess);
}

TEST_F(CudaModel, who_polls_sees_the_end_at_some_time) {
  fill(1, stream_);
  cudaEventRecord(event_, stream_);
  int polls = 0;
  while (cudaEventQuery(event_) == cudaErrorNotReady) ASSERT_LT(++polls, 100);
  EXPECT_GT(polls, 0);
}

TEST_F(CudaModel, the_default_stream_and_blocking_ones_wait_for_each_other) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&blocking, 0), cudaSuccess);
  fill(1, nullptr);
  copy(device_, pinned_, blocking);
  cudaStreamSynchronize(blocking);
  EXPECT_EQ(pinned_[0], std::byte{1});
  fill(2, blocking);
  copy(device_, pinned_, nullptr);
  cudaStreamSynchronize(nullptr);
  EXPECT_EQ(pinned_[0], std::byte{2});
  fill(3, nullptr);
  copy(device_, pinned_, stream_);
  cudaStreamSynchronize(stream_);
  EXPECT_EQ(pinned_[0], std::byte{2}) << "a non-blocking stream does not wait";
  cudaStreamSynchronize(nullptr);
  cudaStreamDestroy(blocking);
}

TEST_F(CudaModel, memory_of_the_device_crashes_a_host_that_touches_it) {
  EXPECT_DEATH(*static_cast<volatile std::byte*>(device_) = std::byte{1}, "");
}

TEST_F(CudaModel, memory_that_queued_work_uses_must_not_be_freed) {
  fill(1, stream_);
  void* more = nullptr;
  ASSERT_EQ(cudaMalloc(&more, kBytes), cudaSuccess);
  copy(device_, static_cast<std::byte*>(more), stream_);
  EXPECT_EQ(cudaFree(more), cudaSuccess);
  EXPECT_EQ(fault(), "memory is freed that queued work uses");
}

TEST_F(CudaModel, a_copy_must_stay_within_memory_that_lives) {
  EXPECT_EQ(copy(pinned_, device_, stream_, kBytes + 1), cudaErrorInvalidValue);
  EXPECT_EQ(fault(), "the target of a copy goes beyond its allocation");
  void* gone = nullptr;
  ASSERT_EQ(cudaMalloc(&gone, kBytes), cudaSuccess);
  ASSERT_EQ(cudaFree(gone), cudaSuccess);
  EXPECT_EQ(copy(static_cast<std::byte*>(gone), pinned_, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(faults().back(), "the source of a copy is memory that was freed");
}

TEST_F(CudaModel, handles_that_are_gone_are_refused) {
  cudaEvent_t gone = nullptr;
  cudaEventCreateWithFlags(&gone, 0);
  cudaEventDestroy(gone);
  EXPECT_EQ(cudaEventRecord(gone, stream_), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventSynchronize(gone), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
}

TEST_F(CudaModel, memory_runs_out) {
  reset({.schedule = Schedule::kLatest, .memory_bytes = 100});
  void* made = nullptr;
  EXPECT_EQ(cudaMalloc(&made, 60), cudaSuccess);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 60), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFree(made), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&more, 60), cudaSuccess);
  EXPECT_EQ(cudaFree(more), cudaSuccess);
  SetUp();  // what TearDown takes down
}

TEST_F(CudaModel, one_call_fails_or_it_and_all_after_it) {
  for (const bool sticky : {false, true}) {
    reset({.failing_call = 2, .sticky = sticky});
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaErrorUnknown);
    EXPECT_EQ(cudaSetDevice(0), sticky ? cudaErrorUnknown : cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaErrorUnknown);
    EXPECT_EQ(cudaGetLastError(), sticky ? cudaErrorUnknown : cudaSuccess);
  }
  SetUp();
}

void add_warps(const int* numbers, int count, int* sums) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  int value = static_cast<int>(thread) < count ? numbers[thread] : 0;
  for (int ahead = 16; ahead > 0; ahead /= 2) value += __shfl_down_sync(~0U, value, ahead);
  if (threadIdx.x % 32 == 0) atomicAdd(sums + blockIdx.x, value);
}

TEST_F(CudaModel, lanes_of_a_warp_exchange_values) {
  int* const numbers = reinterpret_cast<int*>(pinned_);
  int* const sums = numbers + 200;
  for (int i = 0; i < 150; ++i) numbers[i] = i;
  sums[0] = sums[1] = 0;
  cudaLaunchConfig_t config = {
      .gridDim = dim3(2), .blockDim = dim3(96), .dynamicSmemBytes = 0, .stream = stream_};
  EXPECT_EQ(cudaLaunchKernelEx(&config, add_warps, numbers, 150, sums), cudaSuccess);
  EXPECT_EQ(sums[0], 0) << "not before somebody waits";
  cudaStreamSynchronize(stream_);
  EXPECT_EQ(sums[0], 96 * 95 / 2);
  EXPECT_EQ(sums[0] + sums[1], 150 * 149 / 2);
}

void leave_early(int* /*unused*/) {
  if (threadIdx.x % 2 == 0) static_cast<void>(__shfl_down_sync(~0U, 1, 1));
}

TEST_F(CudaModel, a_shuffle_needs_all_lanes) {
  cudaLaunchConfig_t config = {
      .gridDim = dim3(1), .blockDim = dim3(32), .dynamicSmemBytes = 0, .stream = stream_};
  cudaLaunchKernelEx(&config, leave_early, nullptr);
  cudaStreamSynchronize(stream_);
  EXPECT_EQ(fault(), "a lane ended while others of its warp waited in a shuffle");
}

struct Large {
  std::array<std::byte, 32'765> bytes;
};
void take(Large /*large*/) {}

TEST_F(CudaModel, a_launch_of_no_blocks_or_with_too_many_parameters_is_refused) {
  cudaLaunchConfig_t config = {
      .gridDim = dim3(1), .blockDim = dim3(32), .dynamicSmemBytes = 0, .stream = stream_};
  EXPECT_EQ(cudaLaunchKernelEx(&config, take, Large{}), cudaErrorInvalidValue);
  config.gridDim = dim3(0);
  EXPECT_EQ(cudaLaunchKernelEx(&config, leave_early, nullptr), cudaErrorInvalidConfiguration);
}

}  // namespace
}  // namespace reprise::models
