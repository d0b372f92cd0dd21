// Tests what the adapter does if the job's stream holds work that never ends, as a kernel that
// waits for a rank that has died.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/adapters/cuda/cuda_device.hpp"
#include "reprise/error.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/gpu/gpu.hpp"
#include "tests/models/cuda/cuda_model.hpp"

namespace reprise::models {
namespace {

constexpr std::int64_t kLarge = std::int64_t{1} << 20U;  // enough for a copy by itself

/// Says that every rank but this one has ended.
class AllEnded final : public PeerWatch {
 public:
  bool has_ended(GlobalRank /*rank*/) override { return true; }
};

class BehindWorkThatNeverEnds : public testing::Test {
 protected:
  void SetUp() override { reset({.schedule = Schedule::kLatest}); }
  void TearDown() override { reset({}); }

  /// Blocks the job's stream, and expects that each kind of wait ends with this code.
  static void expect_ends(const CudaPatience& patience, Code code) {
    CudaDevice device("node7", 0, patience);
    const testing_gpu::OnDevice source(device, Bytes(kLarge, std::byte{7}));
    device.reserve(4 * kLarge);  // so that only the end of the device keeps staging back
    const StagingMemory staged = device.staging(kLarge);
    const GatherCopy copy{{source.data(), {1}}, {staged.get(), {1}}, {kLarge}, 1};
    block(device.compute_stream().handle);
    const auto event = device.gather({&copy, 1});
    const auto first = contracts::error_of([&] { device.wait(event); });
    ASSERT_TRUE(first);
    EXPECT_EQ(first->code(), code) << first->what();
    EXPECT_NE(std::string(first->what()).find("node7:0"), std::string::npos) << first->what();
    const ScatterCopy back{{staged.get(), {1}}, {source.data(), {1}}, {kLarge}, 1};
    // And from then on.
    EXPECT_EQ(contracts::code_of([&] { device.gather({&copy, 1}); }), code);
    EXPECT_EQ(contracts::code_of([&] { device.scatter({&back, 1}); }), code);
    EXPECT_EQ(contracts::code_of([&] { device.publish(); }), code);
    EXPECT_EQ(contracts::code_of([&] { device.reserve(kLarge); }), code);
    EXPECT_EQ(contracts::code_of([&] { device.staging(kLarge); }), code);
    EXPECT_TRUE(device.abandoned());
    EXPECT_EQ(faults(), std::vector<std::string>{});
    let_go();  // so that the memory of this test can be freed
  }
};

TEST_F(BehindWorkThatNeverEnds, a_gather_ends_with_the_deadline) {
  expect_ends({.deadline_ns = 50'000'000}, Code::kDeadline);
}

TEST_F(BehindWorkThatNeverEnds, a_gather_ends_when_a_peer_has_ended) {
  AllEnded watch;
  CudaPatience patience;
  patience.peers = {&watch, Group::world(2), GlobalRank{0}};
  expect_ends(patience, Code::kPeerFailed);
}

TEST_F(BehindWorkThatNeverEnds, staging_that_must_be_pinned_ends_with_the_deadline) {
  CudaDevice device("node7", 0, {.deadline_ns = 50'000'000});
  device.reserve(kLarge);
  block(device.compute_stream().handle);
  EXPECT_NE(device.staging(kLarge), nullptr) << "what was reserved is there at once";
  EXPECT_EQ(contracts::code_of([&] { device.staging(8 * kLarge); }), Code::kDeadline);
  EXPECT_EQ(contracts::code_of([&] { device.reserve(64 * kLarge); }), Code::kDeadline);
  EXPECT_EQ(faults(), std::vector<std::string>{});
  let_go();
}

TEST_F(BehindWorkThatNeverEnds, small_copies_to_pageable_memory_end_at_the_deadline) {
  CudaDevice device("node7", 0, {.deadline_ns = 50'000'000});
  const testing_gpu::OnDevice source(device, Bytes(64, std::byte{7}));
  Bytes plain(64);
  const GatherCopy copy{{source.data(), {1}}, {plain.data(), {1}}, {64}, 1};
  block(device.compute_stream().handle);
  EXPECT_EQ(contracts::code_of([&] { device.wait(device.gather({&copy, 1})); }), Code::kDeadline);
  EXPECT_EQ(faults(), std::vector<std::string>{}) << "neither an allocation nor a kernel to load";
  let_go();
}

TEST_F(BehindWorkThatNeverEnds, the_first_kernel_of_a_device_does_not_wait) {
  const DeviceMemory source(0, 64);  // freed after the device has ended
  CudaDevice device("node7", 0, {.deadline_ns = 50'000'000});
  const StagingMemory staged = device.staging(64);
  const GatherCopy copy{{source.data(), {1}}, {staged.get(), {1}}, {64}, 1};
  block(device.compute_stream().handle);
  device.gather({&copy, 1});
  device.publish();
  EXPECT_EQ(faults(), std::vector<std::string>{});
  let_go();
}

TEST_F(BehindWorkThatNeverEnds, a_device_needs_a_deadline) {
  EXPECT_EQ(contracts::code_of([] { CudaDevice("node7", 0, {.deadline_ns = 0}); }), Code::kUsage);
}

TEST_F(BehindWorkThatNeverEnds, a_large_copy_to_memory_that_is_not_pinned_does_not_block) {
  CudaDevice device("node7", 0, {.deadline_ns = 50'000'000});
  const testing_gpu::OnDevice source(device, Bytes(kLarge, std::byte{7}));
  Bytes plain(kLarge);
  const GatherCopy copy{{source.data(), {1}}, {plain.data(), {1}}, {kLarge}, 1};
  block(device.compute_stream().handle);
  EXPECT_EQ(contracts::code_of([&] { device.gather({&copy, 1}); }), Code::kDeadline);
  EXPECT_EQ(faults(), std::vector<std::string>{});
  let_go();
}

TEST_F(BehindWorkThatNeverEnds, an_abandoned_device_frees_nothing_that_copies_use) {
  CudaStream job(0);
  DeviceMemory source(0, kLarge);
  {
    CudaDevice device("node7", job.ref(), {.deadline_ns = 50'000'000});
    const StagingMemory staged = device.staging(kLarge);
    const GatherCopy copy{{source.data(), {1}}, {staged.get(), {1}}, {kLarge}, 1};
    block(job.ref().handle);
    const auto event = device.gather({&copy, 1});
    EXPECT_EQ(contracts::code_of([&] { device.wait(event); }), Code::kDeadline);
  }
  EXPECT_EQ(faults(), std::vector<std::string>{});
  let_go();
}

}  // namespace
}  // namespace reprise::models
