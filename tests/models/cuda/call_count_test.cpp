// Tests how many calls of CUDA a snapshot of many small tensors makes. A call takes about a
// microsecond, in which the bus moves 64 KiB.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/save/leaf_source.hpp"
#include "tests/gpu/gpu.hpp"
#include "tests/models/cuda/cuda_model.hpp"

namespace reprise::models {
namespace {

constexpr std::int64_t kTensors = 10'000;
constexpr std::int64_t kEach = std::int64_t{64} << 10U;
constexpr std::size_t kAll = kTensors * kEach;
constexpr std::uint64_t kCallsMax = 50;

class CallCount : public testing::Test {
 protected:
  void SetUp() override {
    reset({.schedule = Schedule::kLatest});
    device_ = std::make_unique<CudaDevice>("node7", 0);
    memory_ = std::make_unique<DeviceMemory>(0, kAll);
    staging_ = device_->staging(kAll);
  }

  /// Runs `what` and returns how many calls it made. Prints them by their names.
  std::uint64_t calls_of(const std::function<void()>& what) {
    const auto before = calls_by_name();
    what();
    std::uint64_t all = 0;
    names_.clear();
    for (const auto& [name, count] : calls_by_name()) {
      const auto found = before.find(name);
      const std::uint64_t made = count - (found == before.end() ? 0 : found->second);
      if (made > 0) names_ += "  " + std::to_string(made) + ' ' + name;
      all += made;
    }
    return all;
  }

  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<DeviceMemory> memory_;
  StagingMemory staging_;
  std::string names_;
};

/// Gathers all tensors through `source`, as a save does whose staging holds the whole state.
void take_snapshot(CudaDevice& device, ContentSource& source, std::byte* to) {
  const auto batch = static_cast<std::int64_t>(device.batch_bytes());
  for (std::int64_t i = 0; i < kTensors; ++i) {
    source.fill(static_cast<std::size_t>(i), 0, kEach, {to + i * kEach, kEach});
    if (i * kEach / batch != (i + 1) * kEach / batch) source.start();
  }
  source.drain();
}

TEST_F(CallCount, of_a_second_snapshot_of_10000_tensors_is_at_most_50) {
  std::vector<TensorLeaf> leaves;
  for (std::int64_t i = 0; i < kTensors; ++i) {
    TensorLeaf leaf;
    leaf.dtype = DType::kUInt8;
    leaf.shape = {kEach};
    leaf.pieces = {contiguous_piece({{0}, leaf.shape})};
    leaf.data = memory_->data() + i * kEach;
    leaves.push_back(leaf);
  }
  std::vector<LeafOrigin> origins;
  for (const TensorLeaf& leaf : leaves) origins.push_back({&leaf, leaf.pieces.data()});
  for (const std::byte round : {std::byte{1}, std::byte{2}}) {
    fill_bytes(device_->compute_stream(), memory_->data(), round, kAll);
    const auto source = leaf_source(*device_, origins);
    const std::uint64_t made = calls_of([&] { take_snapshot(*device_, *source, staging_.get()); });
    if (round == std::byte{2}) {
      EXPECT_LE(made, kCallsMax) << names_;
    }
    for (std::int64_t i = 0; i < kTensors; ++i) {
      ASSERT_EQ(staging_[i * kEach], round) << i;
      ASSERT_EQ(std::memcmp(staging_.get() + i * kEach, staging_.get() + i * kEach + 1, kEach - 1),
                0)
          << i;
    }
  }
}

}  // namespace
}  // namespace reprise::models
