// Tests how many calls of CUDA a snapshot of many small tensors makes, as a save takes it: a writer
// fills its batches, and a thread writes them. A call takes about a microsecond, in which the bus
// moves 64 KiB.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/ports/passing_store.hpp"
#include "core/save/image_writer.hpp"
#include "core/save/leaf_source.hpp"
#include "tests/fixtures/memory_store.hpp"
#include "tests/gpu/gpu.hpp"
#include "tests/models/cuda/cuda_model.hpp"

namespace reprise::models {
namespace {

constexpr std::int64_t kTensors = 10'000;
constexpr std::int64_t kEach = std::int64_t{64} << 10U;
constexpr std::int64_t kAll = kTensors * kEach;
constexpr std::uint64_t kStaging = std::uint64_t{1} << 30U;
constexpr std::uint64_t kCallsMax = 50;
constexpr std::uint64_t kTaskCallsMax = 21;  // around the polls for 7 batches of the device
const std::string kPoll = "cudaEventQuery";  // how many there are depends on time

/// Keeps nothing, and counts the bytes that are `wanted`.
class CountingFile final : public WriteFile {
 public:
  CountingFile(std::byte wanted, std::int64_t& found) : wanted_(wanted), found_(found) {}

  void write_at(std::uint64_t /*offset*/, ByteSpan bytes) override {
    found_ += std::count(bytes.begin(), bytes.end(), wanted_);
  }
  void sync() override {}
  void close() override {}

 private:
  std::byte wanted_;
  std::int64_t& found_;
};

class CountingStore final : public PassingStore {
 public:
  CountingStore(Store& inner, std::byte wanted) : PassingStore(inner), wanted_(wanted) {}

  std::unique_ptr<WriteFile> create(const std::string& /*path*/) override {
    return std::make_unique<CountingFile>(wanted_, found);
  }

  std::int64_t found = 0;

 private:
  std::byte wanted_;
};

/// Counts how often each function was called.
struct Calls {
  std::map<std::string, std::uint64_t> by_name = {};

  std::uint64_t but_polls() const {
    std::uint64_t sum = 0;
    for (const auto& [name, count] : by_name) sum += name == kPoll ? 0 : count;
    return sum;
  }
  std::string text() const {
    std::string all;
    for (const auto& [name, count] : by_name) all += "  " + std::to_string(count) + ' ' + name;
    return all;
  }
};

Calls calls_since(const Calls& before, CalledBy threads) {
  Calls made;
  for (const auto& [name, count] : calls_by_name(threads)) {
    const auto found = before.by_name.find(name);
    const std::uint64_t since = count - (found == before.by_name.end() ? 0 : found->second);
    if (since > 0) made.by_name[name] = since;
  }
  return made;
}

class CallCount : public testing::TestWithParam<BeginReturns> {
 protected:
  void SetUp() override {
    reset({.schedule = Schedule::kLatest});
    device_ = std::make_unique<CudaDevice>("node7", 0);
    device_->reserve(static_cast<std::size_t>(kStaging));
    memory_ = std::make_unique<DeviceMemory>(0, static_cast<std::size_t>(kAll));
    for (std::int64_t i = 0; i < kTensors; ++i) {
      TensorLeaf leaf;
      leaf.dtype = DType::kUInt8;
      leaf.shape = {kEach};
      leaf.pieces = {contiguous_piece({{0}, leaf.shape})};
      leaf.data = memory_->data() + i * kEach;
      leaves_.push_back(leaf);
    }
  }

  /// Takes a snapshot of which no copy ends before the last has begun. The device then has as many
  /// batches as a snapshot may need, however long the tasks of a save keep theirs.
  void begin_everything_at_once() {
    const StagingMemory staged = device_->staging(static_cast<std::size_t>(kAll));
    block(device_->compute_stream().handle);
    DeviceEvent last;
    for (std::int64_t i = 0; i < kTensors; ++i) {
      const GatherCopy copy{
          {memory_->data() + i * kEach, {1}}, {staged.get() + i * kEach, {1}}, {kEach}, 1};
      last = device_->gather({&copy, 1});
    }
    device_->publish();
    let_go();
    device_->wait(last);
  }

  /// Saves all tensors, each byte of which is `content`. Keeps what was called meanwhile.
  void save(std::byte content) {
    fill_bytes(device_->compute_stream(), memory_->data(), content, static_cast<std::size_t>(kAll));
    std::vector<LeafOrigin> origins;
    for (const TensorLeaf& leaf : leaves_) origins.push_back({&leaf, leaf.pieces.data()});
    std::vector<ImageItem> items;
    for (const TensorLeaf& leaf : leaves_) {
      items.push_back({.key = {}, .dtype = leaf.dtype, .extent = leaf.shape, .content = {}});
    }
    test::MemoryStore memory;
    CountingStore store(memory, content);
    ThreadTasks tasks(1);
    const auto source = leaf_source(*device_, origins);
    const Calls own{calls_by_name(CalledBy::kThisThread)};
    const Calls others{calls_by_name(CalledBy::kOthers)};
    ImageWriter writer(store, tasks, "f", std::move(items),
                       {.staging_bytes_max = kStaging,
                        .batch_bytes = device_->batch_bytes(),
                        .checksums = Checksums::kNone,
                        .returns = GetParam()});
    writer.stage(*source);
    writer.wait_for_copies(*source);
    writer.finish();
    callers_ = calls_since(own, CalledBy::kThisThread);
    tasks_ = calls_since(others, CalledBy::kOthers);
    // Heads and tails have a few such bytes, too.
    EXPECT_GE(store.found, kAll);
    EXPECT_LE(store.found, kAll + kTensors * 256);
  }

  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<DeviceMemory> memory_;
  std::vector<TensorLeaf> leaves_;
  Calls callers_;
  Calls tasks_;
};

TEST_P(CallCount, of_a_second_snapshot_of_10000_tensors_is_at_most_50) {
  begin_everything_at_once();
  save(std::byte{0xB1});
  save(std::byte{0xB2});
  EXPECT_LE(callers_.but_polls(), kCallsMax) << callers_.text();
  EXPECT_LE(tasks_.but_polls(), kTaskCallsMax) << tasks_.text();
  RecordProperty("caller", callers_.text());
  RecordProperty("tasks", tasks_.text());
}

INSTANTIATE_TEST_SUITE_P(WhenCopied, CallCount, testing::Values(BeginReturns::kWhenCopied));
INSTANTIATE_TEST_SUITE_P(WhenQueued, CallCount, testing::Values(BeginReturns::kWhenQueued));

}  // namespace
}  // namespace reprise::models
