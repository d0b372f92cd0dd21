// Tests what the adapter waits for, under the schedule that runs nothing unasked: on a GPU this
// can't be seen, because all work runs soon.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/adapters/cuda/cuda_device.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/gpu/gpu.hpp"
#include "tests/models/cuda/cuda_model.hpp"
#include "tests/models/cuda/vendor/cuda_runtime_api.h"

namespace reprise::models {
namespace {

constexpr std::int64_t kLarge = std::int64_t{8} << 20U;  // more than a batch holds

class WhatIsWaitedFor : public testing::Test {
 protected:
  void SetUp() override { reset({.schedule = Schedule::kLatest}); }

  static DeviceEvent gather(CudaDevice& device, const testing_gpu::OnDevice& from,
                            const StagingMemory& to, std::int64_t bytes) {
    const GatherCopy copy{{from.data(), {1}}, {to.get(), {1}}, {bytes}, 1};
    return device.gather({&copy, 1});
  }
};

TEST_F(WhatIsWaitedFor, is_the_batch_of_a_large_copy_and_no_later_one) {
  CudaDevice device("node7", 0);
  const testing_gpu::OnDevice source(device, Bytes(kLarge, std::byte{7}));
  const auto first = device.staging(kLarge);
  const auto second = device.staging(kLarge);
  std::fill_n(first.get(), kLarge, std::byte{0});
  std::fill_n(second.get(), kLarge, std::byte{0});
  const DeviceEvent one = gather(device, source, first, kLarge);
  const DeviceEvent other = gather(device, source, second, kLarge);
  device.wait(one);
  EXPECT_EQ(first[kLarge - 1], std::byte{7});
  EXPECT_EQ(second[kLarge - 1], std::byte{0}) << "nobody has waited for it yet";
  device.wait(other);
  EXPECT_EQ(second[kLarge - 1], std::byte{7});
}

TEST_F(WhatIsWaitedFor, by_a_table_is_no_copy_of_an_engine) {
  reset({.schedule = Schedule::kEager});
  CudaDevice device("node7", 0);
  const testing_gpu::OnDevice source(device, Bytes(kLarge, std::byte{7}));
  const auto large = device.staging(kLarge);
  const auto small = device.staging(64);
  large[0] = small[0] = std::byte{0};
  hold_copies();
  const DeviceEvent first = gather(device, source, large, kLarge);
  const DeviceEvent second = gather(device, source, small, 64);
  device.publish();
  EXPECT_EQ(small[0], std::byte{7}) << "waits for the copy of an engine";
  EXPECT_EQ(large[0], std::byte{0});
  let_go();
  device.wait(second);
  device.wait(first);
  EXPECT_EQ(large[0], std::byte{7});
}

/// Gathers one part of memory and then scatters it whole, by another way, or the other way round.
/// Returns what the gather saw.
std::byte seen_by_gather(std::int64_t gathered, std::int64_t scattered, bool scatters_first) {
  CudaDevice device("node7", 0);
  const testing_gpu::OnDevice memory(device, Bytes(kLarge, std::byte{1}));
  const auto taken = device.staging(kLarge);
  const auto given = device.staging(kLarge);
  std::fill_n(taken.get(), kLarge, std::byte{0});
  std::fill_n(given.get(), kLarge, std::byte{2});
  const GatherCopy gather{{memory.data(), {1}}, {taken.get(), {1}}, {gathered}, 1};
  const ScatterCopy scatter{{given.get(), {1}}, {memory.data(), {1}}, {scattered}, 1};
  if (scatters_first) device.scatter({&scatter, 1});
  const DeviceEvent event = device.gather({&gather, 1});
  if (scatters_first) {
    device.wait(event);
  } else {
    device.wait(device.scatter({&scatter, 1}));
    EXPECT_EQ(memory.read()[0], std::byte{2});
  }
  return taken[0];
}

TEST_F(WhatIsWaitedFor, by_another_thread_keeps_no_gather_waiting) {
  CudaDevice device("node7", 0);
  const testing_gpu::OnDevice source(device, Bytes(64, std::byte{7}));
  const auto staged = device.staging(128);
  std::fill_n(staged.get(), 128, std::byte{0});
  block(device.compute_stream().handle);
  const DeviceEvent first = gather(device, source, staged, 64);
  device.publish();
  // The thread stops between two questions until the gather below has returned.
  std::promise<void> asked;
  std::promise<void> gathered;
  bool in_time = true;
  bool once = true;
  set_callers({.pause = [&] {
    if (!std::exchange(once, false)) return std::this_thread::yield();
    asked.set_value();
    in_time = gathered.get_future().wait_for(std::chrono::seconds(5)) == std::future_status::ready;
  }});
  std::thread waiting([&] { device.wait(first); });
  asked.get_future().wait();
  const GatherCopy copy{{source.data(), {1}}, {staged.get() + 64, {1}}, {64}, 1};
  const DeviceEvent second = device.gather({&copy, 1});
  gathered.set_value();
  let_go();
  waiting.join();
  set_callers({});
  EXPECT_TRUE(in_time) << "the gather waits for the thread";
  device.wait(second);
  EXPECT_EQ(staged[63], std::byte{7});
  EXPECT_EQ(staged[127], std::byte{7});
}

TEST_F(WhatIsWaitedFor, when_the_kind_changes_is_every_copy_of_the_kind_before) {
  for (const auto schedule : {Schedule::kLatest, Schedule::kEager}) {
    for (const auto& [gathered, scattered] :
         {std::pair(std::int64_t{64}, kLarge), std::pair(kLarge, std::int64_t{64})}) {
      reset({.schedule = schedule});
      EXPECT_EQ(seen_by_gather(gathered, scattered, false), std::byte{1}) << gathered;
      EXPECT_EQ(seen_by_gather(gathered, scattered, true), std::byte{2}) << gathered;
    }
  }
}

TEST_F(WhatIsWaitedFor, by_later_work_is_every_batch_of_a_scatter) {
  CudaDevice device("node7", 0);
  // More copies than one batch holds: four tables of 1,364.
  constexpr std::int64_t kCopies = 6'000;
  const testing_gpu::OnDevice target(device, Bytes(kCopies, std::byte{0}));
  const auto staged = device.staging(kCopies);
  std::fill_n(staged.get(), kCopies, std::byte{5});
  std::vector<ScatterCopy> copies;
  for (std::int64_t i = 0; i < kCopies; ++i) {
    copies.push_back({{staged.get() + i, {1}}, {target.data() + i, {1}}, {1}, 1});
  }
  const DeviceEvent event = device.scatter(copies);
  device.publish();
  EXPECT_EQ(target.read(), Bytes(kCopies, std::byte{5})) << "read on the job's stream";
  device.wait(event);
}

TEST_F(WhatIsWaitedFor, by_later_work_is_a_scatter_though_publish_failed_before) {
  int failed = 0;
  for (std::uint64_t failing = 1;; ++failing) {
    reset({.schedule = Schedule::kLatest});
    CudaDevice device("node7", 0);
    const testing_gpu::OnDevice target(device, Bytes(kLarge + 64, std::byte{0}));
    const auto staged = device.staging(kLarge + 64);
    std::fill_n(staged.get(), kLarge + 64, std::byte{5});
    const ScatterCopy copies[] = {
        {{staged.get(), {1}}, {target.data(), {1}}, {64}, 1},
        {{staged.get() + 64, {1}}, {target.data() + 64, {1}}, {kLarge}, 1},
    };
    const DeviceEvent event = device.scatter(copies);
    let_fail(failing);
    const bool fails = contracts::error_of([&] { device.publish(); }).has_value();
    const bool was_last = calls() < settings().failing_call;
    let_fail(1U << 30U);
    if (contracts::error_of([&] { device.publish(); })) continue;
    EXPECT_EQ(target.read(), Bytes(kLarge + 64, std::byte{5})) << failing;
    device.wait(event);
    if (was_last) break;
    failed += fails ? 1 : 0;
  }
  EXPECT_GE(failed, 2) << "the two holds of the job's stream";
}

class JobsOwnStream : public WhatIsWaitedFor {
 protected:
  /// Lets the job fill memory on its own stream, and gathers it by a device that the job made.
  template <class Made>
  static std::byte gathered(const Made& made) {
    const CudaStream job(0);
    const DeviceMemory state(0, kLarge);
    const auto device = made(job.ref());
    const StagingMemory staged = device->staging(kLarge);
    fill_bytes(job.ref(), state.data(), std::byte{1}, kLarge);
    const GatherCopy copy{{state.data(), {1}}, {staged.get(), {1}}, {kLarge}, 1};
    device->wait(device->gather({&copy, 1}));
    CudaEvent end(0);
    end.record(job.ref());
    end.wait();  // before the memory is freed
    return staged[kLarge - 1];
  }
};

TEST_F(JobsOwnStream, is_what_a_gather_waits_for_if_the_device_was_given_it) {
  EXPECT_EQ(gathered([](CudaStreamRef job) { return std::make_unique<CudaDevice>("node7", job); }),
            std::byte{1});
  EXPECT_EQ(gathered([](CudaStreamRef job) { return cuda_device(0, job.handle); }), std::byte{1});
  EXPECT_NE(gathered([](CudaStreamRef) { return std::make_unique<CudaDevice>("node7", 0); }),
            std::byte{1})
      << "this model would not show a gather that does not wait";
}

TEST_F(JobsOwnStream, may_be_named_later) {
  EXPECT_EQ(gathered([](CudaStreamRef job) {
              auto device = std::make_unique<CudaDevice>("node7", 0);
              device->use_stream(job.handle);
              return device;
            }),
            std::byte{1});
  EXPECT_EQ(gathered([](CudaStreamRef job) {
              auto device = std::make_unique<CudaDevice>("node7", job);
              device->use_stream(CudaStream(0).ref().handle);
              device->use_stream(nullptr);
              return device;
            }),
            std::byte{1})
      << "null is the stream with which the device was made";
}

TEST_F(JobsOwnStream, named_later_leaves_collected_copies_to_the_one_before) {
  constexpr std::int64_t kSmall = 64;  // is collected
  const CudaStream first(0);
  const CudaStream second(0);
  CudaDevice device("node7", first.ref());
  const DeviceMemory state(0, kSmall);
  const StagingMemory staged = device.staging(kSmall);
  fill_bytes(first.ref(), state.data(), std::byte{1}, kSmall);
  const GatherCopy copy{{state.data(), {1}}, {staged.get(), {1}}, {kSmall}, 1};
  const DeviceEvent event = device.gather({&copy, 1});
  device.use_stream(second.ref().handle);
  device.wait(event);
  EXPECT_EQ(staged[kSmall - 1], std::byte{1});
  CudaEvent end(0);
  end.record(first.ref());
  end.wait();  // before the memory is freed
}

/// What a gather sees of memory that the job filled on the default stream of its thread. The device
/// was made with `stream`, and another thread waits for the gather.
std::byte gathered_per_thread(void* stream) {
  const CudaStreamRef job{cudaStreamPerThread, 0};
  const auto device = cuda_device(0, stream);
  std::byte seen{0};
  for (const std::int64_t bytes : {std::int64_t{64}, kLarge}) {
    const DeviceMemory state(0, static_cast<std::size_t>(bytes));
    const StagingMemory staged = device->staging(static_cast<std::size_t>(bytes));
    fill_bytes(job, state.data(), std::byte{1}, static_cast<std::size_t>(bytes));
    const GatherCopy copy{{state.data(), {1}}, {staged.get(), {1}}, {bytes}, 1};
    const DeviceEvent event = device->gather({&copy, 1});
    std::thread([&] { device->wait(event); }).join();
    seen = staged[bytes - 1];
    CudaEvent end(0);
    end.record(job);
    end.wait();  // before the memory is freed
    if (seen != std::byte{1}) break;
  }
  return seen;
}

TEST_F(JobsOwnStream, may_be_the_default_stream_of_each_thread) {
  EXPECT_EQ(gathered_per_thread(cudaStreamPerThread), std::byte{1});
  EXPECT_EQ(gathered_per_thread(nullptr), std::byte{1}) << "the legacy default stream waits for it";
  const CudaStream other(0);
  EXPECT_NE(gathered_per_thread(other.ref().handle), std::byte{1})
      << "this model would not show a gather that does not wait";
}

TEST_F(JobsOwnStream, may_be_the_default_stream_of_each_thread_after_a_load) {
  const CudaStreamRef job{cudaStreamPerThread, 0};
  const auto device = cuda_device(0, cudaStreamPerThread);
  const DeviceMemory state(0, 64);
  const StagingMemory staged = device->staging(64);
  std::fill_n(staged.get(), 64, std::byte{5});
  const ScatterCopy copy{{staged.get(), {1}}, {state.data(), {1}}, {64}, 1};
  device->scatter({&copy, 1});
  device->publish();
  Bytes seen(64);
  copy_bytes(job, state.data(), seen.data(), seen.size());
  EXPECT_EQ(seen, Bytes(64, std::byte{5})) << "the job's next work runs after the load";
}

TEST_F(WhatIsWaitedFor, a_gather_that_was_published_is_of_the_state_at_that_time) {
  CudaDevice device("node7", 0);
  const testing_gpu::OnDevice source(device, Bytes(64, std::byte{7}));
  const auto staged = device.staging(64);
  const DeviceEvent event = gather(device, source, staged, 64);
  device.publish();
  fill_bytes(device.compute_stream(), source.data(), std::byte{8}, 64);  // the job goes on
  device.wait(event);
  EXPECT_EQ(staged[63], std::byte{7});
  EXPECT_EQ(source.read(), Bytes(64, std::byte{8}));
}

}  // namespace
}  // namespace reprise::models
