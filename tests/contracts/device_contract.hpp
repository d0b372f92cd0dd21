#pragma once
// What every device promises. `Lane`: `void run(function<void(Device&)>)`, and memory that the
// device can copy from and to is made and looked at by `upload`/`download` (host devices: plain
// copies).

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <vector>

#include "core/ports/device.hpp"

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

TYPED_TEST_SUITE_P(DeviceContract);

TYPED_TEST_P(DeviceContract, gathered_region_is_in_staging_after_wait) {
  this->run([](Device& device) {
    auto source = counted(12);  // 3 x 4; columns 1 and 2 of all rows
    std::vector<std::int32_t> staging(6, -1);
    const std::vector<GatherCopy> copies = {{.device = {data_of(source) + 4, {4, 1}},
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
    std::vector<std::int32_t> target(12, 0);
    const std::vector<ScatterCopy> copies = {{.host = {data_of(staging), {2, 1}},
                                              .device = {data_of(target) + 4, {4, 1}},
                                              .extents = {3, 2},
                                              .element_bytes = 4}};
    device.wait(device.scatter(copies));
    EXPECT_EQ(target, (std::vector<std::int32_t>{0, 1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0}));
  });
}

TYPED_TEST_P(DeviceContract, copies_are_done_that_were_waited_for_in_whatever_order) {
  this->run([](Device& device) {
    auto source = counted(4);
    std::vector<std::int32_t> first(4, -1);
    std::vector<std::int32_t> second(4, -1);
    const auto gather = [&](std::vector<std::int32_t>& staging) {
      const std::vector<GatherCopy> copies = {
          {{data_of(source), {1}}, {data_of(staging), {1}}, {4}, sizeof(std::int32_t)}};
      return device.gather(copies);
    };
    const auto earlier = gather(first);
    device.wait(gather(second));
    EXPECT_EQ(second, source);
    device.wait(earlier);
    EXPECT_EQ(first, source);
  });
}

TYPED_TEST_P(DeviceContract, empty_and_scalar_copies_are_copies_and_waiting_twice_is_no_error) {
  this->run([](Device& device) {
    auto source = counted(1);
    std::vector<std::int32_t> staging(2, -1);
    const std::vector<GatherCopy> copies = {
        {{data_of(source), {1}}, {data_of(staging), {1}}, {0}, sizeof(std::int32_t)},
        {{data_of(source), {}}, {data_of(staging) + 4, {}}, {}, sizeof(std::int32_t)}};
    const auto event = device.gather(copies);
    device.wait(event);
    device.wait(event);
    device.wait(device.gather({}));
    EXPECT_EQ(staging, (std::vector<std::int32_t>{-1, 1}));
    EXPECT_FALSE(device.name().empty());
  });
}

REGISTER_TYPED_TEST_SUITE_P(DeviceContract, gathered_region_is_in_staging_after_wait,
                            scattered_region_is_on_the_device_after_wait,
                            copies_are_done_that_were_waited_for_in_whatever_order,
                            empty_and_scalar_copies_are_copies_and_waiting_twice_is_no_error);

}  // namespace reprise::contracts
