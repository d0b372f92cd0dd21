// Tests that the adapter works on its own device whatever the current device of the thread is. The
// machines of tests/gpu have a single GPU.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/adapters/cuda/cuda_compare.hpp"
#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/adapters/cuda/launch.cuh"
#include "reprise/error.hpp"
#include "tests/contracts/error_of.hpp"
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

void make_current(int device) { EXPECT_EQ(cudaSetDevice(device), cudaSuccess); }

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
    make_current(0);
  }

  static constexpr CudaStreamRef kDefault{nullptr, 1};
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<DeviceMemory> memory_;
  StagingMemory staging_;
};

TEST_P(TwoDevices, the_jobs_current_device_stays_after_each_call) {
  const GatherCopy gather{{memory_->data(), {1}}, {staging_.get(), {1}}, {GetParam()}, 1};
  const ScatterCopy scatter{{staging_.get(), {1}}, {memory_->data(), {1}}, {GetParam()}, 1};
  Bytes plain(static_cast<std::size_t>(GetParam()));
  const GatherCopy unpinned{{memory_->data(), {1}}, {plain.data(), {1}}, {GetParam()}, 1};
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"gather",
       [&] {
         device_->gather({&gather, 1});
       }},
      {"publish", [&] { device_->publish(); }},
      {"wait",
       [&] {
         device_->wait(device_->gather({&gather, 1}));
       }},
      {"gather to memory that is not pinned",
       [&] {
         device_->wait(device_->gather({&unpinned, 1}));
       }},
      {"scatter",
       [&] {
         device_->wait(device_->scatter({&scatter, 1}));
       }},
      {"staging", [&] { device_->staging(std::size_t{1} << 25U); }},
      {"reserve", [&] { device_->reserve(std::size_t{1} << 26U); }},
      {"name", [&] { EXPECT_FALSE(device_->name().empty()); }},
      {"reaches", [&] { EXPECT_TRUE(device_->reaches(memory_->data())); }},
      {"a kernel", [&] { launch(kDefault, 1, AddOne{memory_->data()}); }},
      {"fill_bytes", [&] { fill_bytes(kDefault, memory_->data(), std::byte{1}, 1); }},
      {"memory", [&] { DeviceMemory(1, 1), PinnedMemory(1, 1); }},
      {"a second device", [&] { cuda_device(1); }},
      {"the end of the device", [&] { device_.reset(); }},
  };
  for (const auto& [name, call] : calls) {
    make_current(0);
    call();
    EXPECT_EQ(current(), 0) << name;
  }
}

TEST_P(TwoDevices, a_gather_and_a_scatter_are_on_their_own) {
  const auto bytes = static_cast<std::size_t>(GetParam());
  const GatherCopy gather{{memory_->data(), {1}}, {staging_.get(), {1}}, {GetParam()}, 1};
  const ScatterCopy scatter{{staging_.get(), {1}}, {memory_->data(), {1}}, {GetParam()}, 1};
  // In the second round the device makes nothing, which would make it current.
  for (const std::byte round : {std::byte{1}, std::byte{2}}) {
    fill_bytes(kDefault, memory_->data(), round, bytes);
    make_current(0);
    const DeviceEvent gathered = device_->gather({&gather, 1});
    make_current(0);
    device_->wait(gathered);
    EXPECT_EQ(staging_[GetParam() - 1], round);
    std::fill_n(staging_.get(), bytes, std::byte{8});
    make_current(0);
    const DeviceEvent scattered = device_->scatter({&scatter, 1});
    make_current(0);
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
  make_current(0);
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
  make_current(0);
  device_.reset();  // frees its staging, so the copy must have ended
  EXPECT_EQ(faults(), std::vector<std::string>{});
  Bytes seen(static_cast<std::size_t>(GetParam()));
  copy_bytes(kDefault, memory_->data(), seen.data(), seen.size());
}

TEST_P(TwoDevices, a_kernel_is_on_its_own) {
  fill_bytes(kDefault, memory_->data(), std::byte{7}, static_cast<std::size_t>(GetParam()));
  make_current(0);
  launch(kDefault, GetParam(), AddOne{memory_->data()});
  Bytes seen(static_cast<std::size_t>(GetParam()));
  copy_bytes(kDefault, memory_->data(), seen.data(), seen.size());
  EXPECT_EQ(seen, Bytes(seen.size(), std::byte{8}));
}

TEST_P(TwoDevices, a_comparison_is_on_its_own) {
  const auto bytes = static_cast<std::size_t>(GetParam());
  fill_bytes(kDefault, memory_->data(), std::byte{7}, bytes);
  make_current(0);
  EXPECT_TRUE(
      compare_on_device(*device_, DType::kUInt8, memory_->data(), memory_->data(), GetParam())
          .same());
}

INSTANTIATE_TEST_SUITE_P(Bytes, TwoDevices, testing::Values(kSmall, kLarge));

TEST(OwnDevice, is_where_memory_streams_and_events_are_made) {
  reset({.schedule = Schedule::kLatest, .devices = 2});
  const DeviceMemory memory(1, kSmall);
  const PinnedMemory pinned(1, kSmall);
  EXPECT_EQ(allocations_on(0), 0U);
  EXPECT_EQ(contexts(), std::set<int>{1}) << "the job does not use device 0";
  make_current(0);
  const CudaStream stream(1);
  EXPECT_NE(stream.ref().handle, nullptr) << "not the default stream";
  make_current(0);
  CudaEvent event(1);
  make_current(0);
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
    // A thread that has not used CUDA yet, whose current device is therefore 0.
    std::thread([freed = std::move(third)] {}).join();
  }
  EXPECT_EQ(contexts(), std::set<int>{1}) << "memory is freed on its own device";
  EXPECT_EQ(live_objects(), 0U);
}

TEST(OwnDevice, moves_along_with_memory) {
  expect_moves<DeviceMemory>();
  expect_moves<PinnedMemory>();
}

TEST(OwnDevice, for_which_there_is_no_code_is_refused_when_it_is_made) {
  reset({.schedule = Schedule::kLatest, .has_code = false});
  const auto error = contracts::error_of([] { CudaDevice("node7", 0); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kUnsupported);
  EXPECT_NE(std::string(error->what()).find("compute capability 9.5"), std::string::npos)
      << error->what();
}

TEST(OwnDevice, is_one_of_all_that_there_are) {
  reset({.schedule = Schedule::kLatest, .devices = 2});
  EXPECT_EQ(cuda_devices().size(), 2U);
}

TEST(OwnDevice, does_not_reach_the_memory_of_another) {
  reset({.schedule = Schedule::kLatest, .devices = 2});
  const CudaDevice first("node7", 0);
  const CudaDevice second("node7", 1);
  const DeviceMemory memory(1, 64);
  const PinnedMemory pinned(1, 64);
  EXPECT_FALSE(first.reaches(memory.data() + 3));
  EXPECT_TRUE(second.reaches(memory.data() + 3));
  EXPECT_TRUE(first.reaches(pinned.data()));
  const std::byte plain{};
  EXPECT_FALSE(first.reaches(&plain));
}

TEST(OwnDevice, says_what_is_missing_on_this_machine) {
  const auto expect_says = [](const Settings& settings, int index, const std::string& what) {
    reset(settings);
    const auto error = contracts::error_of([&] { cuda_device(index); });
    ASSERT_TRUE(error) << what;
    EXPECT_EQ(error->code(), Code::kUnsupported) << error->what();
    EXPECT_THAT(error->what(), testing::HasSubstr("CUDA device " + std::to_string(index)));
    EXPECT_THAT(error->what(), testing::HasSubstr(what));
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "a later launch would report it";
  };
  expect_says({.driver = 0}, 0, "no driver is installed");
  EXPECT_EQ(cuda_why_none(), "no driver is installed");
  expect_says({.driver = 12'040}, 0, "the driver is of CUDA 12.4; install one of CUDA 13.0");
  expect_says({.devices = 2}, 2, "sees 2; CUDA_VISIBLE_DEVICES");
  reset({.failing_call = 1});
  const auto other = contracts::error_of([] { cuda_device(0); });
  ASSERT_TRUE(other);
  EXPECT_EQ(other->code(), Code::kInternal) << other->what();
  reset({});
}

TEST(OwnDevice, is_named_by_its_node_and_index) {
  reset({.schedule = Schedule::kLatest, .devices = 2});
  std::array<char, 256> node = {};
  ASSERT_EQ(gethostname(node.data(), node.size() - 1), 0);
  EXPECT_EQ(cuda_device(1, nullptr)->name(), std::string(node.data()) + ":1");
}

}  // namespace
}  // namespace reprise::models
