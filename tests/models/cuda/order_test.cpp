// Tests what the adapter waits for, under the schedule that runs nothing unasked: on a GPU this
// can't be seen, because all work runs soon.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/adapters/cuda/cuda_device.hpp"
#include "tests/gpu/gpu.hpp"
#include "tests/models/cuda/cuda_model.hpp"

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

TEST_F(WhatIsWaitedFor, by_later_work_is_every_batch_of_a_scatter) {
  CudaDevice device("node7", 0);
  // More copies than one batch holds.
  constexpr std::int64_t kCopies = 600;
  const testing_gpu::OnDevice target(device, Bytes(kCopies, std::byte{0}));
  const auto staged = device.staging(kCopies);
  std::fill_n(staged.get(), kCopies, std::byte{5});
  std::vector<ScatterCopy> copies;
  for (std::int64_t i = 0; i < kCopies; ++i) {
    copies.push_back({{staged.get() + i, {1}}, {target.data() + i, {1}}, {1}, 1});
  }
  const DeviceEvent event = device.scatter(copies);
  EXPECT_EQ(target.read(), Bytes(kCopies, std::byte{5})) << "read on the job's stream";
  device.wait(event);
}

}  // namespace
}  // namespace reprise::models
