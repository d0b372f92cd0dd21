// Tests what the adapter uses again, and what a call that failed leaves behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/cuda/kernel_result.hpp"
#include "reprise/error.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/gpu/gpu.hpp"
#include "tests/models/cuda/cuda_model.hpp"
#include "tests/models/cuda/vendor/cuda_runtime.h"

namespace reprise::models {
namespace {

constexpr std::int64_t kBytes = 1000;
constexpr std::size_t kMemory = std::size_t{1} << 20U;

class Reuse : public testing::Test {
 protected:
  void SetUp() override { begin({.schedule = Schedule::kLatest, .memory_bytes = kMemory}); }
  void begin(const Settings& settings) {
    source_.reset();
    device_.reset();
    reset(settings);
    device_ = std::make_unique<CudaDevice>("node7", 0);
    source_ = std::make_unique<testing_gpu::OnDevice>(*device_, Bytes(kBytes, std::byte{7}));
  }
  GatherCopy copy_to(std::byte* to) const {
    return {{source_->data(), {1}}, {to, {1}}, {kBytes}, 1};
  }
  DeviceEvent gather_to(std::byte* to) {
    const GatherCopy copy = copy_to(to);
    return device_->gather({&copy, 1});
  }

  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<testing_gpu::OnDevice> source_;
};

TEST_F(Reuse, is_of_batches_and_of_pinned_memory) {
  Bytes plain(kBytes);
  const auto calls_of_one = [&] {
    const std::uint64_t before = calls();
    device_->wait(gather_to(plain.data()));
    return calls() - before;
  };
  const std::uint64_t first = calls_of_one();
  const std::size_t objects = live_objects();
  const std::uint64_t second = calls_of_one();
  EXPECT_LT(second, first) << "makes no batch";
  EXPECT_EQ(calls_of_one(), second);
  EXPECT_EQ(live_objects(), objects);
}

TEST_F(Reuse, of_batches_needs_no_memory) {
  Bytes plain(kBytes);
  device_->wait(gather_to(plain.data()));
  std::vector<DeviceMemory> taken;
  for (std::size_t bytes = settings().memory_bytes; bytes >= 256; bytes /= 2) {
    try {
      taken.emplace_back(0, bytes);
    } catch (const Error&) {
      continue;
    }
  }
  std::fill(plain.begin(), plain.end(), std::byte{0});
  device_->wait(gather_to(plain.data()));
  EXPECT_EQ(plain, Bytes(kBytes, std::byte{7}));
}

TEST_F(Reuse, of_pinned_memory_waits_for_its_batch) {
  Bytes plain(kBytes);
  const DeviceEvent event = gather_to(plain.data());
  const auto staged = device_->staging(kBytes);
  std::fill_n(staged.get(), kBytes, std::byte{1});
  device_->wait(event);
  EXPECT_EQ(plain, Bytes(kBytes, std::byte{7}));
  EXPECT_EQ(Bytes(staged.get(), staged.get() + kBytes), Bytes(kBytes, std::byte{1}));
}

TEST_F(Reuse, of_a_devices_memory_waits_for_its_copies) {
  constexpr std::int64_t kLarge = std::int64_t{512} << 10U;  // copied by itself
  const DeviceMemory large(0, kLarge);
  {
    const auto staged = device_->staging(kLarge);
    const ScatterCopy copy{{staged.get(), {1}}, {large.data(), {1}}, {kLarge}, 1};
    device_->scatter({&copy, 1});
    device_->publish();
  }
  device_.reset();  // what it frees must not be in use
  EXPECT_EQ(faults().size(), 0U);
}

TEST_F(Reuse, of_memory_with_copies_nobody_waited_for_is_safe_at_the_end) {
  Bytes plain(kBytes);
  gather_to(plain.data());
  source_.reset();
  device_.reset();
  EXPECT_EQ(faults().size(), 0U);
  EXPECT_EQ(plain, Bytes(kBytes));
}

TEST_F(Reuse, of_staging_is_safe_after_copies_that_could_not_be_queued) {
  int refused = 0;  // failures after which the device takes no copies
  bool reached = true;
  for (std::uint64_t ahead = 1; reached; ++ahead) {
    begin({.schedule = Schedule::kLatest});
    const auto staged = device_->staging(kBytes);
    const DeviceEvent event = gather_to(staged.get());
    const auto throws = [](const auto& call) { return contracts::error_of(call).has_value(); };
    const std::uint64_t before = calls();
    let_fail(ahead);
    const bool failed = throws([&] { device_->wait(event); });
    reached = calls() - before >= ahead;
    let_fail(0);
    if (!failed) continue;  // a call that ends a scope
    std::fill_n(staged.get(), kBytes, std::byte{1});
    Bytes other(kBytes);
    if (!throws([&] { gather_to(other.data()); })) {
      device_->wait(event);  // only a poll had failed, and the copies had been queued
      continue;
    }
    ++refused;
    EXPECT_TRUE(throws([&] { device_->wait(event); }));
    EXPECT_EQ(Bytes(staged.get(), staged.get() + kBytes), Bytes(kBytes, std::byte{1})) << ahead;
  }
  EXPECT_GE(refused, 4) << "two for the order after compute, the launch, and the batch's event";
}

TEST_F(Reuse, of_staging_is_safe_after_a_call_that_failed_halfway) {
  std::size_t noticed = 0;
  bool reached = true;
  for (std::uint64_t ahead = 1; reached; ++ahead) {
    begin({.schedule = Schedule::kLatest});
    const auto staged = device_->staging(kBytes);
    Bytes plain(kBytes);
    const std::array copies = {copy_to(staged.get()), copy_to(plain.data())};
    const std::uint64_t before = calls();
    let_fail(ahead);
    const bool failed = contracts::error_of([&] { device_->gather(copies); }).has_value();
    reached = calls() - before >= ahead;
    let_fail(0);
    if (!failed) continue;  // a call that ends a scope
    ++noticed;
    std::fill_n(staged.get(), kBytes, std::byte{1});
    Bytes other(kBytes);
    device_->wait(gather_to(other.data()));
    EXPECT_EQ(other, Bytes(kBytes, std::byte{7}));
    EXPECT_EQ(Bytes(staged.get(), staged.get() + kBytes), Bytes(kBytes, std::byte{1}))
        << "written by a call that failed, after it had failed: " << ahead;
  }
  EXPECT_GT(noticed, 10U);
}

TEST_F(Reuse, of_the_numbers_of_kernels_waits_for_the_earlier_ones) {
  KernelResult result(0);
  const CudaStreamRef stream = device_->compute_stream();
  const DeviceMemory kept(0, sizeof(int));
  const int* const first = result.begin(stream, 7);
  copy_bytes(stream, reinterpret_cast<const std::byte*>(first), kept.data(), sizeof(int));
  result.begin(stream, 9);
  int seen = 0;
  copy_bytes(stream, kept.data(), reinterpret_cast<std::byte*>(&seen), sizeof seen);
  testing_gpu::wait_for(stream);
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(result.end<int>(stream), 9);
}

TEST_F(Reuse, of_the_runtime_after_an_error_finds_no_error) {
  EXPECT_THROW(DeviceMemory(0, std::size_t{1} << 46U), Error);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Stream, has_events_that_are_waited_for_and_tell_failures) {
  reset({.schedule = Schedule::kLatest});
  const CudaStream stream(0);
  const DeviceMemory memory(0, kBytes);
  const PinnedMemory pinned(0, kBytes);
  CudaEvent after(0);
  fill_bytes(stream.ref(), memory.data(), std::byte{3}, kBytes);
  copy_bytes(stream.ref(), memory.data(), pinned.data(), kBytes);
  after.record(stream.ref());
  EXPECT_FALSE(after.done());
  after.wait();
  EXPECT_EQ(pinned.data()[kBytes - 1], std::byte{3});
  EXPECT_TRUE(after.done());
  fill_bytes(stream.ref(), memory.data(), std::byte{4}, kBytes);
  after.record(stream.ref());
  CudaEvent moved(0);
  moved = std::move(after);
  EXPECT_FALSE(moved.done());
  moved.wait();
  EXPECT_TRUE(moved.done());
  let_fail(1);
  EXPECT_THROW(moved.done(), Error);
}

}  // namespace
}  // namespace reprise::models
