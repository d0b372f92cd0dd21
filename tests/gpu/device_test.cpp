// Tests that a GPU satisfies the contract of a device and keeps its promises about streams.
#include <cstring>

#include "tests/contracts/copy_cases.hpp"
#include "tests/contracts/device_contract.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/gpu/gpu.hpp"

namespace reprise::contracts {
namespace {

using testing_gpu::OnDevice;
using testing_gpu::OnGpu;

class GpuNumbers {
 public:
  GpuNumbers(Device& device, std::vector<std::int32_t> values)
      : memory_(dynamic_cast<CudaDevice&>(device), std::as_bytes(std::span(values))) {}
  std::byte* data() { return memory_.data(); }
  std::vector<std::int32_t> read() const {
    const Bytes bytes = memory_.read();
    std::vector<std::int32_t> values(bytes.size() / sizeof(std::int32_t));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  OnDevice memory_;
};

struct Gpu {
  using Numbers = GpuNumbers;
  void run(const std::function<void(Device&)>& body) {
    if (cuda_devices().empty()) GTEST_SKIP() << testing_gpu::no_gpu();
    CudaDevice device("node7", 0);
    body(device);
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, DeviceContract, Gpu);

class CudaCopies : public OnGpu {};

/// Returns host memory with this content. The memory is pinned if `pinned` is true.
StagingMemory host_side(CudaDevice& device, bool pinned, const Bytes& content) {
  StagingMemory memory =
      pinned ? device.staging(content.size()) : StagingMemory(new std::byte[content.size()]);
  std::copy(content.begin(), content.end(), memory.get());
  return memory;
}

TEST_F(CudaCopies, every_case_is_gathered_and_scattered_alone) {
  for (const bool pinned : {true, false}) {
    for (const CopyCase& one : copy_cases()) {
      SCOPED_TRACE(one.name + (pinned ? ", pinned" : ", not pinned"));
      const Bytes expected = one.expected();
      const OnDevice source(device(), one.source_memory());
      const auto taken = host_side(device(), pinned, one.target_memory());
      const GatherCopy gather{{source.data() + one.source.offset, one.source.strides},
                              {taken.get() + one.target.offset, one.target.strides},
                              one.extents,
                              one.element_bytes};
      device().wait(device().gather({&gather, 1}));
      ASSERT_EQ(Bytes(taken.get(), taken.get() + expected.size()), expected);
      const auto given = host_side(device(), pinned, one.source_memory());
      const OnDevice target(device(), one.target_memory());
      const ScatterCopy scatter{{given.get() + one.source.offset, one.source.strides},
                                {target.data() + one.target.offset, one.target.strides},
                                one.extents,
                                one.element_bytes};
      device().wait(device().scatter({&scatter, 1}));
      ASSERT_EQ(target.read(), expected);
    }
  }
}

TEST_F(CudaCopies, every_case_is_scattered_from_memory_of_the_device) {
  for (const CopyCase& one : copy_cases()) {
    SCOPED_TRACE(one.name);
    const OnDevice source(device(), one.source_memory());
    const OnDevice target(device(), one.target_memory());
    const ScatterCopy scatter{{source.data() + one.source.offset, one.source.strides},
                              {target.data() + one.target.offset, one.target.strides},
                              one.extents,
                              one.element_bytes};
    device().wait(device().scatter({&scatter, 1}));
    ASSERT_EQ(target.read(), one.expected());
  }
}

TEST_F(CudaCopies, all_cases_are_gathered_in_one_call_into_memory_of_both_kinds) {
  const auto cases = copy_cases();
  std::vector<std::unique_ptr<OnDevice>> sources;
  std::vector<StagingMemory> targets;
  std::vector<GatherCopy> copies;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const CopyCase& one = cases[i];
    sources.push_back(std::make_unique<OnDevice>(device(), one.source_memory()));
    targets.push_back(host_side(device(), i % 3 != 0, one.target_memory()));
    copies.push_back({{sources[i]->data() + one.source.offset, one.source.strides},
                      {targets[i].get() + one.target.offset, one.target.strides},
                      one.extents,
                      one.element_bytes});
  }
  device().wait(device().gather(copies));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Bytes expected = cases[i].expected();
    ASSERT_EQ(Bytes(targets[i].get(), targets[i].get() + expected.size()), expected)
        << cases[i].name;
  }
}

/// Returns a size in bytes whose copy takes a while. With tools that slow everything down, a small
/// size is enough.
std::size_t many_bytes() { return std::size_t{testing_gpu::few() ? 2U : 256U} << 20U; }
unsigned rounds() { return testing_gpu::few() ? 3 : 20; }

TEST_F(CudaCopies, a_gather_comes_after_what_compute_has_queued) {
  const std::size_t many = many_bytes();
  const DeviceMemory memory(0, many);
  const auto staging = device().staging(many);
  for (const std::int64_t bytes : {std::int64_t{1000}, static_cast<std::int64_t>(many)}) {
    for (unsigned round = 1; round < rounds(); ++round) {
      fill_bytes(compute(), memory.data(), static_cast<std::byte>(round), memory.size());
      const std::size_t last = memory.size() - static_cast<std::size_t>(bytes);
      const GatherCopy copy{{memory.data() + last, {1}}, {staging.get(), {1}}, {bytes}, 1};
      device().wait(device().gather({&copy, 1}));
      ASSERT_EQ(staging[0], static_cast<std::byte>(round));
      ASSERT_EQ(staging[bytes - 1], static_cast<std::byte>(round));
    }
  }
}

TEST_F(CudaCopies, compute_follows_a_scatter_which_follows_earlier_compute) {
  const std::size_t many = many_bytes();
  const DeviceMemory memory(0, many);
  const DeviceMemory copied(0, many);
  const auto staging = device().staging(many);
  const auto seen = device().staging(many);
  for (const std::int64_t bytes : {std::int64_t{1000}, static_cast<std::int64_t>(many)}) {
    const auto size = static_cast<std::size_t>(bytes);
    for (unsigned round = 1; round < rounds(); ++round) {
      std::fill_n(staging.get(), bytes, static_cast<std::byte>(round));
      fill_bytes(compute(), memory.data(), std::byte{0xEE}, memory.size());
      const ScatterCopy copy{{staging.get(), {1}}, {memory.data(), {1}}, {bytes}, 1};
      const auto event = device().scatter({&copy, 1});
      device().publish();
      copy_bytes(compute(), memory.data(), copied.data(), size);
      copy_bytes(compute(), copied.data(), seen.get(), size);
      testing_gpu::wait_for(compute());
      ASSERT_TRUE(std::equal(seen.get(), seen.get() + bytes, staging.get()));
      device().wait(event);
    }
  }
}

TEST_F(CudaCopies, a_scatter_comes_after_an_earlier_gather_of_the_same_memory) {
  constexpr std::int64_t kBytes = 16;
  const OnDevice memory(device(), Bytes(kBytes, std::byte{1}));
  const auto taken = host_side(device(), true, Bytes(kBytes, std::byte{0}));
  const auto given = host_side(device(), true, Bytes(kBytes, std::byte{2}));
  const GatherCopy gather{{memory.data(), {1}}, {taken.get(), {1}}, {kBytes}, 1};
  const ScatterCopy scatter{{given.get(), {1}}, {memory.data(), {1}}, {kBytes}, 1};
  device().gather({&gather, 1});
  device().wait(device().scatter({&scatter, 1}));
  EXPECT_EQ(Bytes(taken.get(), taken.get() + kBytes), Bytes(kBytes, std::byte{1}));
  EXPECT_EQ(memory.read(), Bytes(kBytes, std::byte{2}));
}

TEST_F(CudaCopies, released_staging_is_reused_even_after_the_device_is_gone) {
  const std::byte* first = nullptr;
  {
    const auto once = device().staging(1 << 20U);
    first = once.get();
  }
  const auto again = device().staging((1 << 20U) - 5);
  EXPECT_EQ(again.get(), first);
  StagingMemory longer;
  {
    CudaDevice other("node7", 0);
    longer = other.staging(5);
  }
  longer[4] = std::byte{1};
}

TEST_F(CudaCopies, ranks_that_share_a_device_have_one_identity) {
  const CudaDevice other("node7", 0);
  EXPECT_EQ(other.identity(), device().identity());
  EXPECT_FALSE(CudaDevice("node8", 0).identity() == device().identity());
  EXPECT_EQ(device().name(), "node7:0");
  EXPECT_FALSE(device().identity().name.empty());
  EXPECT_GT(device().identity().memory_bytes, 0U);
}

TEST_F(CudaCopies, errors_say_what_failed_and_where) {
  const auto full = error_of([] { const DeviceMemory memory(0, std::size_t{1} << 46U); });
  ASSERT_TRUE(full);
  EXPECT_EQ(full->code(), Code::kNoSpace);
  EXPECT_NE(full->message().find("cudaMalloc of 70368744177664 bytes"), std::string::npos);
  EXPECT_NE(full->message().find("device 0"), std::string::npos);
  const auto absent = error_of([] { const CudaDevice device("node7", 1000); });
  ASSERT_TRUE(absent);
  EXPECT_EQ(absent->code(), Code::kUnsupported) << absent->what();
}

TEST(NoGpu, a_device_is_refused_with_what_is_missing) {
  if (!cuda_devices().empty()) GTEST_SKIP() << "this machine has a GPU";
  const auto error = error_of([] { const CudaDevice device("node7", 0); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kUnsupported) << error->what();
  EXPECT_NE(error->message().find("CUDA device 0 can't be used: "), std::string::npos)
      << error->what();
}

}  // namespace
}  // namespace reprise::contracts
