// Tests that saves and loads use staging memory that the device provides.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/adapters/posix/host_device.hpp"
#include "core/load/load.hpp"
#include "core/save/image_options.hpp"
#include "core/save/save.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"

namespace reprise {
namespace {

/// A device that can access host memory only if the device allocated it. A GPU has the same
/// restriction when it copies at full speed.
class PinningDevice final : public Device {
 public:
  explicit PinningDevice(std::uint64_t batch_bytes) : batch_bytes_(batch_bytes) {}

  std::string name() const override { return host_.name(); }
  DeviceEvent gather(std::span<const GatherCopy> copies) override {
    for (const auto& copy : copies) require_given(copy.host.data);
    return host_.gather(copies);
  }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    for (const auto& copy : copies) require_given(copy.host.data);
    return host_.scatter(copies);
  }
  void wait(DeviceEvent event) override { host_.wait(event); }
  std::uint64_t batch_bytes() const override { return batch_bytes_; }
  StagingMemory staging(std::size_t bytes) override {
    StagingMemory memory(new std::byte[bytes]);
    given_.emplace_back(memory, memory.get(), bytes);
    return memory;
  }

  std::size_t given() const { return given_.size(); }
  bool all_given_back() const {
    return std::all_of(given_.begin(), given_.end(),
                       [](const Given& given) { return given.owner.expired(); });
  }

 private:
  struct Given {
    Given(const StagingMemory& memory, const std::byte* first, std::size_t size)
        : owner(memory), begin(first), bytes(size) {}
    std::weak_ptr<std::byte[]> owner;
    const std::byte* begin;
    std::size_t bytes;
  };

  void require_given(const std::byte* host) const {
    const bool found = std::any_of(given_.begin(), given_.end(), [host](const Given& given) {
      return !given.owner.expired() && given.begin <= host && host < given.begin + given.bytes;
    });
    EXPECT_TRUE(found) << "a copy uses other memory";
  }

  HostDevice host_{"node", 0};
  std::uint64_t batch_bytes_;
  std::vector<Given> given_;
};

constexpr std::int64_t kStagedElements = 50'000;

StateDict state_over(std::vector<float>& values) {
  TensorLeaf leaf;
  leaf.key = "w";
  leaf.shape = {kStagedElements};
  leaf.pieces = {contiguous_piece({{0}, leaf.shape})};
  leaf.data = reinterpret_cast<std::byte*>(values.data());
  StateDict state;
  state.tensors.push_back(leaf);
  return state;
}

TEST(Staging, is_the_devices_own_on_save_and_load_and_is_given_back) {
  struct Row {
    std::uint64_t batch_bytes;  // batch size that the device sets
    std::size_t batches;        // batches expected for about 200,000 bytes
  };
  for (const Row row : {Row{0, 25}, Row{40'000, 6}, Row{1U << 20U, 1}}) {
    const contracts::TemporaryDirectory directory;
    contracts::run_ranks(1, directory.path(), [&](const Ports& near) {
      PinningDevice device(row.batch_bytes);
      const Ports ports{near.store, near.fabric, device, near.tasks, near.trace};
      const auto group = ports.fabric.communicator(Group::world(1));
      std::vector<float> values(kStagedElements);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
      Save::begin(
          ports, group, state_over(values),
          {.directory = "ckpt", .staging_bytes = std::uint64_t{4} << 20U, .batch_bytes = 8192})
          .finish();
      EXPECT_TRUE(device.all_given_back());
      EXPECT_GE(device.given(), 1U);
      EXPECT_LE(device.given(), row.batches + 1);
      std::vector<float> loaded(kStagedElements, -1);
      StateDict into = state_over(loaded);
      load(ports, *group, into, {.directory = "ckpt"});
      EXPECT_TRUE(device.all_given_back());
      EXPECT_EQ(loaded, values);
    });
  }
}

TEST(Staging, batches_have_the_devices_size_if_four_of_them_fit) {
  const ImageOptions options{.staging_bytes_max = 4096 * 16, .batch_bytes = 4096};
  EXPECT_EQ(with_batches_of(0, options).batch_bytes, 4096U);
  EXPECT_EQ(with_batches_of(8192, options).batch_bytes, 8192U);
  EXPECT_EQ(with_batches_of(1U << 30U, options).batch_bytes, 4096U * 4);
  EXPECT_EQ(with_batches_of(8192, {.staging_bytes_max = 4096, .batch_bytes = 4096}).batch_bytes,
            4096U);
}

}  // namespace
}  // namespace reprise
