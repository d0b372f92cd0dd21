// Tests that the engine saves and loads a state in a GPU's memory, small and large tensors alike.
#include <algorithm>
#include <functional>
#include <string>

#include "core/base/random.hpp"
#include "core/load/load.hpp"
#include "core/save/save.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/gpu/gpu.hpp"

namespace reprise {
namespace {

using testing_gpu::OnDevice;

class CudaSaveLoad : public testing_gpu::OnGpu {};

/// Returns two-dimensional tensors in consecutive memory. Every second one is transposed.
StateDict state_over(std::byte* data, const std::vector<std::int64_t>& rows) {
  constexpr std::int64_t kColumns = 7;
  StateDict state;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    TensorLeaf leaf;
    leaf.key = "w" + std::to_string(i);
    leaf.dtype = DType::kBFloat16;
    leaf.shape = {rows[i], kColumns};
    const Dims strides = i % 2 == 0 ? Dims{kColumns, 1} : Dims{1, rows[i]};
    leaf.pieces = {{{{0, 0}, leaf.shape}, 0, strides}};
    leaf.data = data + at * 2;
    state.tensors.push_back(leaf);
    at += rows[i] * kColumns;
  }
  return state;
}

TEST_F(CudaSaveLoad, what_is_loaded_is_what_was_in_the_gpu_when_begin_returned) {
  std::vector<std::int64_t> rows(700, 9);  // many small tensors
  // A tensor of this size is large enough to be copied by itself.
  const std::int64_t large = testing_gpu::few() ? 60'000 : 400'000;
  rows.insert(rows.end(), {1, large, large * 3 / 4 + 1, 2});
  std::size_t bytes = 0;
  for (const auto count : rows) bytes += static_cast<std::size_t>(count) * 7 * 2;
  Stream random(1);
  Bytes content(bytes);
  for (auto& byte : content) byte = static_cast<std::byte>(random.next());
  const contracts::TemporaryDirectory directory;
  contracts::run_ranks(1, directory.path(), [&](const Ports& near) {
    const Ports ports{near.store, near.fabric, device(), near.tasks, near.trace};
    const auto group = ports.fabric.communicator(Group::world(1));
    for (const int turn : {0, 1, 2}) {  // later turns reuse staging memory
      const OnDevice saved(device(), content);
      const OnDevice loaded(device(), Bytes(bytes, std::byte{0xEE}));
      const std::string name = "ckpt" + std::to_string(turn);
      SaveOptions settings{.directory = name};
      if (turn == 2) settings.returns = BeginReturns::kWhenQueued;
      Save save = Save::begin(ports, group, state_over(saved.data(), rows), settings);
      save.wait_for_staging();
      fill_bytes(compute(), saved.data(), std::byte{0}, bytes);  // simulates further training
      save.finish();
      StateDict into = state_over(loaded.data(), rows);
      load(ports, *group, into, {.directory = name});
      EXPECT_TRUE(loaded.read() == content);
    }
  });
}

/// Appends a scalar, as the number of steps that an optimizer has made.
void add_step(StateDict& state, std::byte* data) {
  TensorLeaf leaf;
  leaf.key = "optim.w0.step";
  leaf.dtype = DType::kFloat32;
  leaf.pieces = {{{{}, {}}, 0, {}}};
  leaf.data = data;
  state.tensors.push_back(leaf);
}

TEST_F(CudaSaveLoad, host_memory_is_refused_with_its_key_unless_pinned) {
  const contracts::TemporaryDirectory directory;
  contracts::run_ranks(2, directory.path(), [&](const Ports& near) {
    const Ports ports{near.store, near.fabric, device(), near.tasks, near.trace};
    const auto group = ports.fabric.communicator(Group::world(2));
    const std::vector<std::int64_t> rows(3, 9);
    const OnDevice weights(device(), Bytes(3 * 9 * 7 * 2, std::byte{7}));
    const StagingMemory pinned = device().staging(4);
    std::fill_n(pinned.get(), 4, std::byte{1});
    Bytes plain(4, std::byte{2});
    const auto state_with = [&](std::byte* step) {
      StateDict state = state_over(weights.data(), rows);
      for (auto& leaf : state.tensors) leaf.replica = group->rank().value;
      add_step(state, step);
      state.tensors.back().replica = group->rank().value;
      return state;
    };
    // Rank 1 alone has it on the host, and each rank hears why.
    std::byte* const own = group->rank().value == 1 ? plain.data() : pinned.get();
    const auto expect_refused = [](const std::function<void()>& call) {
      const auto error = contracts::error_of(call);
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), Code::kUnsupported) << error->what();
      EXPECT_EQ(error->place().key, "optim.w0.step");
    };
    expect_refused([&] { Save::begin(ports, group, state_with(own), {.directory = "refused"}); });
    EXPECT_FALSE(ports.store.stat("refused"));
    Save save = Save::begin(ports, group, state_with(pinned.get()), {.directory = "saved"});
    save.finish();
    StateDict into = state_with(own);
    expect_refused([&] { load(ports, *group, into, {.directory = "saved"}); });
    EXPECT_EQ(plain, Bytes(4, std::byte{2})) << "nothing was loaded";
    std::fill_n(pinned.get(), 4, std::byte{0});
    into = state_with(pinned.get());
    load(ports, *group, into, {.directory = "saved"});
    EXPECT_EQ(pinned[3], std::byte{1});
  });
}

}  // namespace
}  // namespace reprise
