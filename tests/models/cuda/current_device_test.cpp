// Tests that the adapter works on its own device whatever the current device of the thread is. The
// machines of tests/gpu have a single GPU.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/adapters/cuda/cuda_compare.hpp"
#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/cuda/launch.cuh"
#include "tests/gpu/gpu.hpp"
#include "tests/models/cuda/cuda_model.hpp"
#include "tests/models/cuda/vendor/cuda_runtime.h"

namespace reprise::models {
namespace {

constexpr std::int64_t kSmall = 1000;
constexpr std::int64_t kLarge = std::int64_t{1} << 20U;  // a copy by itself

int current() {
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  return device;
}

struct AddOne {
  std::byte* numbers;

  void operator()(std::int64_t i) const {
    numbers[i] = static_cast<std::byte>(std::to_integer<unsigned>(numbers[i]) + 1U);
  }
};

/// The job computes on the default stream of device 1, which only the current device tells from
/// that of device 0, and device 0 is current.
class TwoDevices : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    reset({.schedule = Schedule::kLatest, .devices = 2});
    device_ = std::make_unique<CudaDevice>("node7", kDefault);
    memory_ = std::make_unique<DeviceMemory>(1, static_cast<std::size_t>(kLarge));
    staging_ = device_->staging(static_cast<std::size_t>(kLarge));
    use_cuda_device(0);
  }

  static constexpr CudaStreamRef kDefault{nullptr, 1};
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<DeviceMemory> memory_;
  StagingMemory staging_;
};

TEST_P(TwoDevices, a_gather_and_a_scatter_are_on_their_own) {
  const auto bytes = static_cast<std::size_t>(GetParam());
  const GatherCopy gather{{memory_->data(), {1}}, {staging_.get(), {1}}, {GetParam()}, 1};
  const ScatterCopy scatter{{staging_.get(), {1}}, {memory_->data(), {1}}, {GetParam()}, 1};
  // In the second round the device makes nothing, which would make it current.
  for (const std::byte round : {std::byte{1}, std::byte{2}}) {
    fill_bytes(kDefault, memory_->data(), round, bytes);
    use_cuda_device(0);
    const DeviceEvent gathered = device_->gather({&gather, 1});
    use_cuda_device(0);
    device_->wait(gathered);
    EXPECT_EQ(staging_[GetParam() - 1], round);
    std::fill_n(staging_.get(), bytes, std::byte{8});
    use_cuda_device(0);
    const DeviceEvent scattered = device_->scatter({&scatter, 1});
    use_cuda_device(0);
    device_->wait(scattered);
    Bytes seen(bytes);
    copy_bytes(kDefault, memory_->data(), seen.data(), bytes);
    EXPECT_EQ(seen, Bytes(bytes, std::byte{8}));
  }
}

TEST_P(TwoDevices, a_scatter_is_published_on_its_own) {
  const ScatterCopy scatter{{staging_.get(), {1}}, {memory_->data(), {1}}, {GetParam()}, 1};
  std::fill_n(staging_.get(), GetParam(), std::byte{8});
  device_->scatter({&scatter, 1});
  use_cuda_device(0);
  device_->publish();
  Bytes seen(static_cast<std::size_t>(GetParam()));
  copy_bytes(kDefault, memory_->data(), seen.data(), seen.size());
  EXPECT_EQ(seen, Bytes(seen.size(), std::byte{8}));
}

TEST_P(TwoDevices, the_end_of_a_device_is_on_its_own) {
  const ScatterCopy scatter{{staging_.get(), {1}}, {memory_->data(), {1}}, {GetParam()}, 1};
  device_->scatter({&scatter, 1});
  device_->publish();
  staging_.reset();
  use_cuda_device(0);
  device_.reset();  // frees its staging, so the copy must have ended
  EXPECT_EQ(faults(), std::vector<std::string>{});
  Bytes seen(static_cast<std::size_t>(GetParam()));
  copy_bytes(kDefault, memory_->data(), seen.data(), seen.size());
}

TEST_P(TwoDevices, a_kernel_is_on_its_own) {
  fill_bytes(kDefault, memory_->data(), std::byte{7}, static_cast<std::size_t>(GetParam()));
  use_cuda_device(0);
  launch(kDefault, GetParam(), AddOne{memory_->data()});
  Bytes seen(static_cast<std::size_t>(GetParam()));
  copy_bytes(kDefault, memory_->data(), seen.data(), seen.size());
  EXPECT_EQ(seen, Bytes(seen.size(), std::byte{8}));
}

TEST_P(TwoDevices, a_comparison_is_on_its_own) {
  const auto bytes = static_cast<std::size_t>(GetParam());
  fill_bytes(kDefault, memory_->data(), std::byte{7}, bytes);
  use_cuda_device(0);
  EXPECT_TRUE(
      compare_on_device(*device_, DType::kUInt8, memory_->data(), memory_->data(), GetParam())
          .same());
}

INSTANTIATE_TEST_SUITE_P(Bytes, TwoDevices, testing::Values(kSmall, kLarge));

TEST(OwnDevice, is_where_memory_streams_and_events_are_made) {
  reset({.schedule = Schedule::kLatest, .devices = 2});
  const DeviceMemory memory(1, kSmall);
  use_cuda_device(0);
  const PinnedMemory pinned(1, kSmall);
  EXPECT_EQ(allocations_on(0), 0U);
  use_cuda_device(0);
  const CudaStream stream(1);
  EXPECT_NE(stream.ref().handle, nullptr) << "not the default stream";
  use_cuda_device(0);
  CudaEvent event(1);
  use_cuda_device(0);
  fill_bytes(stream.ref(), memory.data(), std::byte{3}, kSmall);
  copy_bytes(stream.ref(), memory.data(), pinned.data(), kSmall);
  event.record(stream.ref());
  event.wait();
  EXPECT_EQ(pinned.data()[kSmall - 1], std::byte{3});
}

template <class Memory>
void expect_moves() {
  reset({.schedule = Schedule::kLatest, .devices = 2});
  {
    Memory first(1, kSmall);
    const std::byte* const at = first.data();
    Memory second(std::move(first));
    EXPECT_EQ(second.data(), at);
    EXPECT_EQ(second.size(), std::size_t{kSmall});
    Memory third;
    third = std::move(second);
    EXPECT_EQ(third.data(), at);
    use_cuda_device(0);
  }
  EXPECT_EQ(current(), 1) << "memory is freed on its own device";
  EXPECT_EQ(live_objects(), 0U);
}

TEST(OwnDevice, moves_along_with_memory) {
  expect_moves<DeviceMemory>();
  expect_moves<PinnedMemory>();
}

TEST(OwnDevice, is_one_of_all_that_there_are) {
  reset({.schedule = Schedule::kLatest, .devices = 2});
  EXPECT_EQ(cuda_devices().size(), 2U);
}

TEST(OwnDevice, is_named_by_its_node_and_index) {
  reset({.schedule = Schedule::kLatest, .devices = 2});
  std::array<char, 256> node = {};
  ASSERT_EQ(gethostname(node.data(), node.size() - 1), 0);
  EXPECT_EQ(cuda_device(1, nullptr)->name(), std::string(node.data()) + ":1");
}

}  // namespace
}  // namespace reprise::models
