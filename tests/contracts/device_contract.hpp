#pragma once
// Contains the tests that every device must pass. A test file defines two types: a `Lane` with the
// function `void run(function<void(Device&)>)`, and `Numbers`, which is device memory with the
// interface of HostNumbers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "reprise/device.hpp"

namespace reprise::contracts {

template <class Lane>
class DeviceContract : public testing::Test {
 protected:
  void run(const std::function<void(Device&)>& body) { lane_.run(body); }
  Lane lane_;
};

inline std::vector<std::int32_t> counted(std::size_t count) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), 1);
  return values;
}
inline std::byte* data_of(std::vector<std::int32_t>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

/// Memory for devices that use host memory.
class HostNumbers {
 public:
  HostNumbers(Device& /*device*/, std::vector<std::int32_t> values) : values_(std::move(values)) {}
  std::byte* data() { return data_of(values_); }
  std::vector<std::int32_t> read() const { return values_; }

 private:
  std::vector<std::int32_t> values_;
};

TYPED_TEST_SUITE_P(DeviceContract);

TYPED_TEST_P(DeviceContract, gathered_region_is_in_staging_after_wait) {
  this->run([](Device& device) {
    // 3 x 4 numbers; columns 1 and 2 are copied.
    typename TypeParam::Numbers source(device, counted(12));
    std::vector<std::int32_t> staging(6, -1);
    const std::vector<GatherCopy> copies = {{.device = {source.data() + 4, {4, 1}},
                                             .host = {data_of(staging), {2, 1}},
                                             .extents = {3, 2},
                                             .element_bytes = 4}};
    device.wait(device.gather(copies));
    EXPECT_EQ(staging, (std::vector<std::int32_t>{2, 3, 6, 7, 10, 11}));
  });
}

TYPED_TEST_P(DeviceContract, scattered_region_is_on_the_device_after_wait) {
  this->run([](Device& device) {
    auto staging = counted(6);
    typename TypeParam::Numbers target(device, std::vector<std::int32_t>(12, 0));
    const std::vector<ScatterCopy> copies = {{.host = {data_of(staging), {2, 1}},
                                              .device = {target.data() + 4, {4, 1}},
                                              .extents = {3, 2},
                                              .element_bytes = 4}};
    device.wait(device.scatter(copies));
    EXPECT_EQ(target.read(), (std::vector<std::int32_t>{0, 1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0}));
  });
}

TYPED_TEST_P(DeviceContract, one_element_of_the_host_fills_a_region_of_the_device) {
  this->run([](Device& device) {
    std::vector<std::int32_t> one = {7};
    typename TypeParam::Numbers target(device, std::vector<std::int32_t>(6, 0));
    const std::vector<ScatterCopy> copies = {{.host = {data_of(one), {0, 0}},
                                              .device = {target.data(), {3, 1}},
                                              .extents = {2, 2},
                                              .element_bytes = 4}};
    device.wait(device.scatter(copies));
    EXPECT_EQ(target.read(), (std::vector<std::int32_t>{7, 7, 0, 7, 7, 0}));
  });
}

TYPED_TEST_P(DeviceContract, copies_are_done_that_were_waited_for_in_whatever_order) {
  this->run([](Device& device) {
    typename TypeParam::Numbers source(device, counted(4));
    std::vector<std::int32_t> first(4, -1);
    std::vector<std::int32_t> second(4, -1);
    const auto gather = [&](std::vector<std::int32_t>& staging) {
      const std::vector<GatherCopy> copies = {
          {{source.data(), {1}}, {data_of(staging), {1}}, {4}, sizeof(std::int32_t)}};
      return device.gather(copies);
    };
    const auto earlier = gather(first);
    device.wait(gather(second));
    EXPECT_EQ(second, counted(4));
    device.wait(earlier);
    EXPECT_EQ(first, counted(4));
  });
}

TYPED_TEST_P(DeviceContract, many_copies_of_all_sizes_pass_through_the_devices_staging) {
  this->run([](Device& device) {
    constexpr std::size_t kSmall = 900;  // number of copies; each copies 3 numbers
    constexpr std::size_t kLarge = 300'000;
    const std::size_t all = 3 * kSmall + kLarge;
    typename TypeParam::Numbers source(device, counted(all));
    typename TypeParam::Numbers target(device, std::vector<std::int32_t>(all, 0));
    const StagingMemory memory = device.staging(all * sizeof(std::int32_t));
    const StagingMemory other = device.staging(64);
    EXPECT_NE(memory.get(), other.get());
    std::vector<DeviceEvent> events;
    std::vector<ScatterCopy> back;
    const auto take = [&](std::size_t begin, std::size_t count) {
      const std::size_t at = begin * sizeof(std::int32_t);
      const Dims extents = {static_cast<std::int64_t>(count)};
      const std::vector<GatherCopy> copies = {
          {{source.data() + at, {1}}, {memory.get() + at, {1}}, extents, sizeof(std::int32_t)}};
      back.push_back({{memory.get() + at, {1}}, {target.data() + at, {1}}, extents, 4});
      events.push_back(device.gather(copies));
    };
    for (std::size_t i = 0; i < kSmall; ++i) {
      take(3 * i, 3);
      if (i == kSmall / 2) take(3 * kSmall, kLarge);
    }
    for (const DeviceEvent event : events) device.wait(event);
    device.wait(device.scatter(back));
    EXPECT_EQ(target.read(), counted(all));
  });
}

TYPED_TEST_P(DeviceContract, one_call_takes_more_copies_than_the_device_moves_at_once) {
  this->run([](Device& device) {
    constexpr std::size_t kBytes = 6'000;  // 300 strided copies have 10 each, every second one
    const auto source_of = counted(kBytes);
    typename TypeParam::Numbers source(device, source_of);
    const auto* const wanted = reinterpret_cast<const std::byte*>(source_of.data());
    for (const auto& [bytes, strided] : {std::pair(true, false), {false, true}, {true, true}}) {
      const StagingMemory staged = device.staging(kBytes * 4);
      std::fill_n(staged.get(), kBytes * 4, std::byte{0xEE});
      std::vector<GatherCopy> copies;
      for (std::size_t i = 0; i < kBytes; ++i) {
        std::byte* const to = staged.get() + i;
        if (bytes) copies.push_back({{source.data() + i, {1}}, {to, {1}}, {1}, 1});
        if (!strided || i % 20 != 0) continue;
        copies.push_back({{source.data() + kBytes + i, {2}}, {to + kBytes, {2}}, {10}, 1});
      }
      device.wait(device.gather(copies));
      for (std::size_t i = 0; i < kBytes; ++i) {
        ASSERT_EQ(staged[i], bytes ? wanted[i] : std::byte{0xEE}) << i;
        const bool copied = strided && i % 2 == 0;
        ASSERT_EQ(staged[kBytes + i], copied ? wanted[kBytes + i] : std::byte{0xEE}) << i;
      }
    }
  });
}

TYPED_TEST_P(DeviceContract, empty_and_scalar_copies_work_and_a_second_wait_is_fine) {
  this->run([](Device& device) {
    typename TypeParam::Numbers source(device, counted(1));
    std::vector<std::int32_t> staging(2, -1);
    const std::vector<GatherCopy> copies = {
        {{source.data(), {1}}, {data_of(staging), {1}}, {0}, sizeof(std::int32_t)},
        {{source.data(), {}}, {data_of(staging) + 4, {}}, {}, sizeof(std::int32_t)}};
    const auto event = device.gather(copies);
    device.wait(event);
    device.wait(event);
    device.wait(device.gather({}));
    device.wait(device.scatter({}));
    EXPECT_EQ(staging, (std::vector<std::int32_t>{-1, 1}));
    EXPECT_FALSE(device.name().empty());
  });
}

REGISTER_TYPED_TEST_SUITE_P(DeviceContract, gathered_region_is_in_staging_after_wait,
                            scattered_region_is_on_the_device_after_wait,
                            one_element_of_the_host_fills_a_region_of_the_device,
                            copies_are_done_that_were_waited_for_in_whatever_order,
                            many_copies_of_all_sizes_pass_through_the_devices_staging,
                            one_call_takes_more_copies_than_the_device_moves_at_once,
                            empty_and_scalar_copies_work_and_a_second_wait_is_fine);

}  // namespace reprise::contracts
