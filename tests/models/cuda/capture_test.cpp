// Tests what the adapter does while the job captures a CUDA graph in mode "global": on another
// stream it works and leaves the capture whole; on the job's own stream it refuses, since copies
// would become part of the graph and not run.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/cuda/cuda_memory.hpp"
#include "reprise/error.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/gpu/gpu.hpp"
#include "tests/models/cuda/cuda_model.hpp"
#include "tests/models/cuda/vendor/cuda_runtime_api.h"

namespace reprise::models {
namespace {

constexpr std::int64_t kLarge = std::int64_t{1} << 20U;  // a copy by itself

class WhileTheJobCaptures : public testing::Test {
 protected:
  void SetUp() override { reset({.schedule = Schedule::kLatest}); }
};

/// A device on a stream of the job, and a small copy for a gather there.
struct SmallGather {
  DeviceEvent gather() { return device.gather({&copy, 1}); }

  CudaStream job{0};
  CudaDevice device{"node7", job.ref()};
  testing_gpu::OnDevice state{device, Bytes(64, std::byte{7})};
  StagingMemory staged = device.staging(64);
  GatherCopy copy{{state.data(), {1}}, {staged.get(), {1}}, {64}, 1};
};

TEST_F(WhileTheJobCaptures, another_stream_copies_work_and_the_capture_stays_whole) {
  const CudaStream captured(0);
  auto device = std::make_unique<CudaDevice>("node7", 0);
  for (const std::int64_t bytes : {std::int64_t{64}, kLarge}) {
    const testing_gpu::OnDevice state(*device,
                                      Bytes(static_cast<std::size_t>(bytes), std::byte{7}));
    Bytes plain(static_cast<std::size_t>(bytes));
    begin_capture(captured.ref().handle);
    device->reserve(static_cast<std::size_t>(bytes) * 4);
    const StagingMemory staged = device->staging(static_cast<std::size_t>(bytes) * 16);
    const GatherCopy copies[] = {{{state.data(), {1}}, {staged.get(), {1}}, {bytes}, 1},
                                 {{state.data(), {1}}, {plain.data(), {1}}, {bytes}, 1}};
    device->wait(device->gather(copies));
    EXPECT_EQ(staged[bytes - 1], std::byte{7});
    EXPECT_EQ(plain.back(), std::byte{7});
    const ScatterCopy back{{staged.get(), {1}}, {state.data(), {1}}, {bytes}, 1};
    device->wait(device->scatter({&back, 1}));
    EXPECT_TRUE(end_capture(captured.ref().handle)) << "a call of the adapter ended the capture";
  }
  begin_capture(captured.ref().handle);
  device.reset();
  EXPECT_TRUE(end_capture(captured.ref().handle)) << "the end of the device ended the capture";
}

/// Expects that each call refuses, queues nothing, and works after the capture.
void expect_refusals(CudaStreamRef job, void* captured) {
  CudaDevice device("node7", job, {.deadline_ns = 50'000'000});
  const DeviceMemory state(0, 64);
  fill_bytes(job, state.data(), std::byte{7}, 64);
  const StagingMemory staged = device.staging(64);
  std::fill_n(staged.get(), 64, std::byte{0});
  const GatherCopy copy{{state.data(), {1}}, {staged.get(), {1}}, {64}, 1};
  const ScatterCopy back{{staged.get(), {1}}, {state.data(), {1}}, {64}, 1};
  begin_capture(captured);
  const auto refusal = contracts::error_of([&] { device.gather({&copy, 1}); });
  ASSERT_TRUE(refusal) << "a gather on a captured stream copies nothing";
  EXPECT_EQ(refusal->code(), Code::kUsage);
  EXPECT_NE(std::string(refusal->what()).find("captured"), std::string::npos) << refusal->what();
  EXPECT_EQ(contracts::code_of([&] { device.scatter({&back, 1}); }), Code::kUsage);
  EXPECT_EQ(contracts::code_of([&] { device.staging(std::size_t{1} << 26U); }), Code::kUsage);
  EXPECT_EQ(contracts::code_of([&] { device.reserve(std::size_t{1} << 27U); }), Code::kUsage);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "an answer that a launch of the job would report";
  EXPECT_TRUE(end_capture(captured));
  device.wait(device.gather({&copy, 1}));
  EXPECT_EQ(staged[63], std::byte{7});
}

TEST_F(WhileTheJobCaptures, the_jobs_own_capture_mode_stays_after_each_call) {
  CudaDevice device("node7", 0);
  const StagingMemory staged = device.staging(std::size_t{1} << 24U);
  device.publish();
  auto mode = cudaStreamCaptureModeThreadLocal;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal) << "with which a thread begins";
  device.reserve(std::size_t{1} << 26U);
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeThreadLocal) << "which the job has chosen";
}

TEST_F(WhileTheJobCaptures, copies_that_were_only_collected_wait_until_its_end) {
  SmallGather small;
  const DeviceEvent event = small.gather();
  begin_capture(small.job.ref().handle);
  EXPECT_EQ(contracts::code_of([&] { small.device.wait(event); }), Code::kUsage);
  EXPECT_EQ(contracts::code_of([&] { small.device.publish(); }), Code::kUsage);
  EXPECT_TRUE(end_capture(small.job.ref().handle));
  small.device.wait(event);
  EXPECT_EQ(small.staged[63], std::byte{7});
}

/// Collects copies of each kind, whose wait a capture refuses, and then lets the
/// device do something else. Expects that it does not make the small copy then.
void expect_given_up(const std::function<void(CudaDevice&, std::byte* state)>& otherwise) {
  const CudaStream job(0);
  CudaDevice device("node7", job.ref());
  const testing_gpu::OnDevice state(device, Bytes(kLarge, std::byte{7}));
  const StagingMemory staged = device.staging(kLarge + 64);
  std::fill_n(staged.get(), kLarge + 64, std::byte{0});
  Bytes plain(64);
  const GatherCopy copies[] = {
      {{state.data(), {1}}, {staged.get(), {1}}, {32}, 1},
      {{state.data(), {2}}, {staged.get() + 32, {2}}, {16}, 1},
      {{state.data(), {1}}, {plain.data(), {1}}, {64}, 1},
      {{state.data(), {1}}, {staged.get() + 64, {1}}, {kLarge}, 1},
  };
  const DeviceEvent event = device.gather(copies);
  begin_capture(job.ref().handle);
  EXPECT_EQ(contracts::code_of([&] { device.publish(); }), Code::kUsage);
  EXPECT_EQ(contracts::code_of([&] { device.wait(event); }), Code::kUsage);
  EXPECT_EQ(staged[64], std::byte{7}) << "the large copy ends before its caller hears of an error";
  EXPECT_TRUE(end_capture(job.ref().handle));
  std::fill_n(staged.get(), kLarge + 64, std::byte{1});  // has another use now
  plain.assign(64, std::byte{1});
  otherwise(device, state.data());
  EXPECT_EQ(contracts::code_of([&] { device.wait(event); }), Code::kUsage);
  EXPECT_EQ(staged[0], std::byte{1});
  EXPECT_EQ(staged[32], std::byte{1});
  EXPECT_EQ(plain, Bytes(64, std::byte{1}));
}

TEST_F(WhileTheJobCaptures, copies_that_nobody_waits_for_again_are_given_up) {
  expect_given_up([](CudaDevice& device, std::byte* state) {
    const StagingMemory staged = device.staging(64);
    const GatherCopy copy{{state, {1}}, {staged.get(), {1}}, {64}, 1};
    device.wait(device.gather({&copy, 1}));
    EXPECT_EQ(staged[63], std::byte{7});
  });
  expect_given_up([](CudaDevice& device, std::byte* state) {
    const StagingMemory staged = device.staging(64);
    const ScatterCopy copy{{staged.get(), {1}}, {state, {1}}, {64}, 1};
    device.wait(device.scatter({&copy, 1}));
  });
  expect_given_up([](CudaDevice& device, std::byte* /*state*/) { device.publish(); });
  expect_given_up([](CudaDevice& device, std::byte* /*state*/) {
    device.use_stream(CudaStream(0).ref().handle);
    device.use_stream(nullptr);
  });
}

TEST_F(WhileTheJobCaptures, copies_are_refused_although_others_were_collected) {
  const CudaStream job(0);
  const CudaStream other(0);
  CudaDevice device("node7", job.ref());
  const testing_gpu::OnDevice state(device, Bytes(kLarge, std::byte{7}));
  const StagingMemory staged = device.staging(kLarge + 64);
  std::fill_n(staged.get(), kLarge + 64, std::byte{0});
  const GatherCopy small{{state.data(), {1}}, {staged.get() + kLarge, {1}}, {64}, 1};
  const GatherCopy large{{state.data(), {1}}, {staged.get(), {1}}, {kLarge}, 1};
  device.gather({&large, 1});
  const DeviceEvent event = device.gather({&small, 1});
  begin_capture(job.ref().handle);
  EXPECT_EQ(contracts::code_of([&] { device.gather({&large, 1}); }), Code::kUsage);
  EXPECT_EQ(staged[kLarge - 1], std::byte{7}) << "ends before the refusal is told";
  EXPECT_TRUE(end_capture(job.ref().handle));
  EXPECT_EQ(contracts::code_of([&] { device.wait(event); }), Code::kUsage);
  EXPECT_EQ(staged[kLarge], std::byte{0});
  device.gather({&small, 1});
  begin_capture(other.ref().handle);
  device.use_stream(other.ref().handle);
  EXPECT_EQ(contracts::code_of([&] { device.gather({&small, 1}); }), Code::kUsage);
  EXPECT_TRUE(end_capture(other.ref().handle));
  device.wait(device.gather({&large, 1}));
  EXPECT_EQ(staged[kLarge - 1], std::byte{7});
}

TEST_F(WhileTheJobCaptures, copies_are_refused_after_others_were_waited_for) {
  for (const bool publishes : {false, true}) {
    SmallGather small;
    const DeviceEvent event = small.gather();
    publishes ? small.device.publish() : small.device.wait(event);
    begin_capture(small.job.ref().handle);
    EXPECT_EQ(contracts::code_of([&] { small.gather(); }), Code::kUsage) << publishes;
    EXPECT_TRUE(end_capture(small.job.ref().handle));
    small.device.wait(event);
  }
}

TEST_F(WhileTheJobCaptures, its_own_stream_copies_are_refused) {
  const CudaStream job(0);
  expect_refusals(job.ref(), job.ref().handle);
}

TEST_F(WhileTheJobCaptures, copies_are_refused_on_a_stream_the_default_one_waits_for) {
  // The job computes on the legacy default stream and captures on a blocking one: that of a thread.
  expect_refusals({nullptr, 0}, cudaStreamPerThread);
}

}  // namespace
}  // namespace reprise::models
