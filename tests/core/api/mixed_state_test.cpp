// Tests saves and loads of a state that is partly in the memory of a device and partly in that of
// the host, on a device that can't copy memory of the host.

#include "core/ports/mixed_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "core/adapters/posix/host_device.hpp"
#include "reprise/reprise.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise {
namespace {

/// A device with 4 KiB of memory, which alone it can copy.
class SmallDevice final : public Device {
 public:
  std::string name() const override { return "small:0"; }
  DeviceEvent gather(std::span<const GatherCopy> copies) override {
    for (const auto& copy : copies) require_own(copy.device.data);
    copied_ += copies.size();
    return host_.gather(copies);
  }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    for (const auto& copy : copies) require_own(copy.device.data);
    copied_ += copies.size();
    return host_.scatter(copies);
  }
  void wait(DeviceEvent event) override { host_.wait(event); }
  bool reaches(const std::byte* address) const override {
    return !std::less<>()(address, memory_.data()) &&
           std::less<>()(address, memory_.data() + memory_.size());
  }

  float* floats(std::size_t at) { return reinterpret_cast<float*>(memory_.data()) + at; }
  std::size_t copied() const { return copied_; }

 private:
  void require_own(const std::byte* address) const {
    if (!reaches(address)) throw Error(Code::kInternal, "this is no memory of the device");
  }

  alignas(16) std::array<std::byte, 4096> memory_{};
  HostDevice host_{"small", 0};
  std::size_t copied_ = 0;
};

class MixedState : public testing::Test {
 protected:
  MixedState() {
    for (std::size_t i = 0; i < 12; ++i) device_->floats(0)[i] = static_cast<float>(i);
    add(state_, "moment", {12}, {.offset = {0}, .extent = {12}, .data = device_->floats(0)});
    add(state_, "step", {3}, on_host(step_, {1}));
    add(state_, "every_other", {3}, on_host(wide_, {2}));
  }

  static TensorPart on_host(std::vector<float>& memory, const Dims& strides) {
    return {.offset = {0},
            .extent = {3},
            .data = memory.data(),
            .strides = strides,
            .memory = MemoryKind::kHost};
  }
  static void add(State& state, const std::string& key, const Dims& shape, const TensorPart& part) {
    state.add(key, DType::kFloat32, shape, {&part, 1});
  }

  contracts::TemporaryDirectory directory_;
  std::shared_ptr<SmallDevice> device_ = std::make_shared<SmallDevice>();
  Job job_ = local_job(directory_.path(), {.device = device_});
  std::vector<float> step_ = {7, 8, 9};
  std::vector<float> wide_ = {1, 0, 2, 0, 3, 0};
  State state_;
};

TEST_F(MixedState, each_part_is_copied_by_whoever_reaches_it) {
  save(job_, state_, {.directory = "run"});
  EXPECT_GT(device_->copied(), 0U);
  std::fill_n(device_->floats(0), 12, -1.0F);
  std::fill(step_.begin(), step_.end(), -1.0F);
  std::fill(wide_.begin(), wide_.end(), -1.0F);
  load(job_, state_, {.directory = "run"});
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(device_->floats(0)[i], static_cast<float>(i));
  EXPECT_EQ(step_, (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(wide_, (std::vector<float>{1, -1, 2, -1, 3, -1}));
}

TEST_F(MixedState, an_overlapping_save_has_copied_host_memory_when_it_returns) {
  auto saving =
      begin_save(job_, state_, {.directory = "run", .returns = BeginReturns::kWhenQueued});
  saving.wait_for_staging();
  std::fill(step_.begin(), step_.end(), -1.0F);
  saving.finish();
  load(job_, state_, {.directory = "run"});
  EXPECT_EQ(step_, (std::vector<float>{7, 8, 9}));
}

TEST_F(MixedState, undeclared_host_memory_is_refused_with_its_key) {
  State state;
  add(state, "step", {3}, {.offset = {0}, .extent = {3}, .data = step_.data()});
  try {
    save(job_, state, {.directory = "run"});
    FAIL() << "the device was to copy memory of the host";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnsupported);
    EXPECT_EQ(error.place().key, "step");
  }
}

TEST(MixedDevice, is_needed_only_if_both_kinds_of_memory_are_there) {
  std::vector<float> memory(3);
  StateDict state;
  TensorLeaf leaf{.key = "w", .shape = {3}, .pieces = {contiguous_piece(Box::whole({3}))}};
  leaf.memory = {{reinterpret_cast<std::byte*>(memory.data()), MemoryKind::kHost}};
  state.tensors = {leaf};
  SmallDevice small;
  HostDevice host("host", 0);
  EXPECT_TRUE(needs_mixed_device(small, state));
  EXPECT_FALSE(needs_mixed_device(host, state));
  state.tensors[0].memory[0].kind = MemoryKind::kDevice;
  EXPECT_FALSE(needs_mixed_device(small, state));
}

}  // namespace
}  // namespace reprise
