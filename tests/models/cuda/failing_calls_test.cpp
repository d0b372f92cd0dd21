// Tests that the engine survives the failure of each single call of CUDA's runtime: a save and a
// load either succeed with the right bytes or throw, and leave nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/cuda/cuda_memory.hpp"
#include "core/load/load.hpp"
#include "core/ports/tasks_at_once.hpp"
#include "core/save/save.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/gpu/gpu.hpp"
#include "tests/models/cuda/cuda_model.hpp"

namespace reprise::models {
namespace {

constexpr std::int64_t kRows = 9;
constexpr std::int64_t kColumns = 7;
constexpr int kTensors = 40;
constexpr std::int64_t kLargeRows = 50'000;  // enough for a copy by itself

StateDict state_over(std::byte* data) {
  StateDict state;
  for (int i = 0; i <= kTensors; ++i) {
    TensorLeaf leaf;
    leaf.key = "w" + std::to_string(i);
    leaf.dtype = DType::kBFloat16;
    leaf.shape = {i == kTensors ? kLargeRows : kRows, kColumns};
    leaf.pieces = {{{{0, 0}, leaf.shape}, 0, {kColumns, 1}}};
    leaf.data = data + i * kRows * kColumns * 2;
    state.tensors.push_back(leaf);
  }
  return state;
}

Bytes content() {
  Bytes bytes((kTensors * kRows + kLargeRows) * kColumns * 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

/// Saves and loads on one rank. Returns what was loaded.
Bytes saved_and_loaded(const std::string& directory) {
  Bytes result;
  contracts::run_ranks(1, directory, [&](const Ports& near) {
    CudaDevice device("node7", 0);
    TasksAtOnce tasks;  // a thread of its own would make calls between those of the caller
    const Ports ports{near.store, near.fabric, device, tasks, near.trace};
    const auto group = ports.fabric.communicator(Group::world(1));
    const testing_gpu::OnDevice saved(device, content());
    const testing_gpu::OnDevice loaded(device, Bytes(content().size(), std::byte{0xEE}));
    Save save = Save::begin(ports, group, state_over(saved.data()), {.directory = "ckpt"});
    save.finish();
    StateDict into = state_over(loaded.data());
    load(ports, *group, into, {.directory = "ckpt"});
    result = loaded.read();
  });
  return result;
}

/// Lets call number `failing` fail. Returns true if the job noticed nothing.
bool works_with_failing(std::uint64_t failing, bool sticky, const Settings& as) {
  Settings settings = as;
  settings.failing_call = failing;
  settings.sticky = sticky;
  reset(settings);
  const contracts::TemporaryDirectory directory;
  try {
    EXPECT_EQ(saved_and_loaded(directory.path()) == content(), true)
        << "a wrong result, and no error: call " << failing;
    return true;
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()), "") << failing;
    return false;
  }
}

class FailingCalls : public testing::TestWithParam<bool> {};

TEST_P(FailingCalls, are_told_and_never_give_wrong_bytes) {
  const Settings settings{.schedule = Schedule::kLatest};
  ASSERT_TRUE(works_with_failing(0, false, settings));
  const std::uint64_t all = calls();
  ASSERT_GT(all, 100U);
  RecordProperty("calls", static_cast<int>(all));
  std::uint64_t unnoticed = 0;
  for (std::uint64_t failing = 1; failing <= all; ++failing) {
    unnoticed += works_with_failing(failing, GetParam(), settings) ? 1U : 0U;
  }
  EXPECT_LT(unnoticed, all * 2 / 5)
      << "calls whose failure changes nothing: those of a free or of the end of a scope";
  reset({});
}

INSTANTIATE_TEST_SUITE_P(Once, FailingCalls, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(FromThenOn, FailingCalls, testing::Values(true));

}  // namespace
}  // namespace reprise::models
