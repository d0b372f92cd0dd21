// Tests that saves and loads allocate and free no memory of a device and no pinned memory, apart
// from staging that was not reserved. Such calls may wait for all work of the device.
#include <gtest/gtest.h>

#include <string>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/load/load.hpp"
#include "core/save/save.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/gpu/gpu.hpp"
#include "tests/models/cuda/cuda_model.hpp"

namespace reprise::models {
namespace {

constexpr std::int64_t kTensors = 500;
constexpr std::int64_t kSmall = 300;
constexpr std::int64_t kLargest = std::int64_t{3} << 19U;  // copied by itself
constexpr std::size_t kBytes = kTensors * kSmall + kLargest;

StateDict state_over(std::byte* data) {
  StateDict state;
  for (std::int64_t i = 0; i <= kTensors; ++i) {
    TensorLeaf leaf;
    leaf.key = "w" + std::to_string(i);
    leaf.dtype = DType::kUInt8;
    leaf.shape = {i == kTensors ? kLargest : kSmall};
    leaf.pieces = {contiguous_piece(Box::whole(leaf.shape))};
    leaf.data = data + i * kSmall;
    state.tensors.push_back(leaf);
  }
  return state;
}

TEST(MemoryCalls, are_none_in_saves_and_loads_after_enough_was_reserved) {
  reset({.schedule = Schedule::kLatest});
  const contracts::TemporaryDirectory directory;
  contracts::run_ranks(1, directory.path(), [&](const Ports& near) {
    CudaDevice device("node7", 0);
    const Ports ports{near.store, near.fabric, device, near.tasks, near.trace};
    const auto group = ports.fabric.communicator(Group::world(1));
    Bytes content(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) content[i] = static_cast<std::byte>(i * 7 + i / 251);
    const testing_gpu::OnDevice saved(device, content);
    const testing_gpu::OnDevice loaded(device, Bytes(kBytes, std::byte{0}));
    device.reserve(std::size_t{64} << 20U);
    const std::uint64_t before = memory_calls();
    for (const bool early : {false, true}) {
      SaveOptions settings{.directory = early ? "b" : "a"};
      if (early) settings.returns = BeginReturns::kWhenQueued;
      Save save = Save::begin(ports, group, state_over(saved.data()), settings);
      save.wait_for_staging();
      save.finish();
      StateDict into = state_over(loaded.data());
      load(ports, *group, into, {.directory = settings.directory});
    }
    EXPECT_EQ(memory_calls(), before);
    EXPECT_TRUE(loaded.read() == content);
  });
}

}  // namespace
}  // namespace reprise::models
