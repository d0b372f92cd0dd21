// Tests that the C interface saves and loads tensors in the memory of a device.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/models/c/on_device.hpp"

namespace reprise::models {
namespace {

constexpr std::int64_t kLarge = 700'000;  // more than what a kernel copies
constexpr std::int64_t kSmall = 66;
constexpr int kSmalls = 200;  // more than one kernel copies
constexpr std::int64_t kAll = kLarge + kSmalls * kSmall;

/// A large tensor and many small ones in the memory of the device, every third of them transposed,
/// and one in memory of the host.
std::vector<Vector> mixed(const Memory& memory, const Bytes& host) {
  std::vector<Vector> vectors = {
      {"large", kLarge, memory.first()},
      {"host", static_cast<std::int64_t>(host.size()), host.data(), RP_HOST}};
  for (int i = 0; i < kSmalls; ++i) {
    vectors.push_back({"w" + std::to_string(i), kSmall, memory.first() + kLarge + i * kSmall,
                       RP_DEVICE, i % 3 == 0});
  }
  return vectors;
}

class Devices : public testing::Test {
 protected:
  Job job(std::int32_t device, std::int64_t deadline_ns = 0) const {
    rp_job_options options = alone(directory_.path(), REPRISE_MODEL_FILE);
    options.device = device;
    options.deadline_ns = deadline_ns;
    Job job;
    EXPECT_OK(rp_job_open(&options, job.out()));
    return job;
  }
  /// Saves, and returns the error.
  static std::pair<std::int32_t, std::string> save(const Job& job, const State& state,
                                                   const rp_save_options& options) {
    Saving saving;
    return failure(rp_save_all(job.get(), state.get(), &options, saving.out()));
  }
  static std::pair<std::int32_t, std::string> load(const Job& job, const State& state,
                                                   const rp_load_options& options) {
    Loading loading;
    return failure(rp_load_all(job.get(), state.get(), &options, loading.out(), nullptr));
  }
  bool is_saved(int step) const {
    char name[32];
    std::snprintf(name, sizeof name, "/run/iter_%07d/.metadata", step);
    return ::access((directory_.path() + name).c_str(), F_OK) == 0;
  }

  contracts::TemporaryDirectory directory_;
  const std::pair<std::int32_t, std::string> ok_ = {RP_OK, ""};
};

TEST_F(Devices, and_the_host_hold_one_state) {
  const Job both = job(1);
  const Bytes content = numbers(kAll, 1), host = numbers(10, 2);
  const Memory saved(content);
  EXPECT_EQ(save(both, state_of(mixed(saved, host)), saved_as(1)), ok_);
  const Memory loaded(Bytes(kAll, 0xEE));
  const Bytes host_loaded(10, 0xEE);
  EXPECT_EQ(load(both, state_of(mixed(loaded, host_loaded)), newest()), ok_);
  EXPECT_EQ(loaded.read() == content, true);
  EXPECT_EQ(host_loaded, host);
}

TEST_F(Devices, change_when_a_save_has_staged_what_it_saves) {
  const Job one = job(1);
  const Bytes content = numbers(kAll, 3), host = numbers(10, 4);
  const Memory memory(content);
  rp_save_options options = saved_as(1);
  options.returns = RP_WHEN_QUEUED;
  Saving saving;
  const State state = state_of(mixed(memory, host));
  EXPECT_OK(rp_begin_save(one.get(), state.get(), &options, saving.out()));
  EXPECT_OK(rp_save_wait_for_staging(saving.get()));
  cudaMemsetAsync(memory.first(), 0, kAll, nullptr);  // the next step of the training
  EXPECT_OK(rp_save_finish(saving.get(), nullptr));
  EXPECT_EQ(load(one, state, newest()), ok_);
  EXPECT_EQ(memory.read() == content, true);
}

TEST_F(Devices, are_chosen_late_and_saves_in_flight_keep_the_one_before) {
  const Job late = job(0);
  const Bytes content = numbers(kAll, 5), host = numbers(1000, 6);
  rp_save_options options = saved_as(1);
  options.returns = RP_WHEN_QUEUED;
  Saving first, second;
  const State before = state_of({{"w", 1000, host.data(), RP_HOST}});
  EXPECT_OK(rp_begin_save(late.get(), before.get(), &options, first.out()));
  EXPECT_OK(rp_job_use_device(late.get(), 1));
  const Memory memory(content);
  const State after = state_of(mixed(memory, host));
  options.step = 2;
  EXPECT_OK(rp_begin_save(late.get(), after.get(), &options, second.out()));
  EXPECT_OK(rp_job_use_device(late.get(), 0));
  EXPECT_OK(rp_save_finish(first.get(), nullptr));
  EXPECT_OK(rp_save_finish(second.get(), nullptr));
  EXPECT_TRUE(is_saved(1) && is_saved(2));
  EXPECT_OK(rp_job_use_device(late.get(), 1));
  const Memory loaded(Bytes(kAll, 0xEE));
  const Bytes host_loaded(1000, 0xEE);
  EXPECT_EQ(load(late, state_of(mixed(loaded, host_loaded)), newest()), ok_);
  EXPECT_EQ(loaded.read() == content, true);
  EXPECT_EQ(host_loaded, host);
}

TEST_F(Devices, keep_the_plan_of_a_structure) {
  const Job one = job(0);
  const Bytes host = numbers(kAll, 7);
  const Memory memory(numbers(kAll, 8));
  const auto planned = [&](const State& state, int step) {
    rp_save_options options = saved_as(step);
    rp_save_result result = {};
    result.struct_size = sizeof result;
    Saving saving;
    EXPECT_OK(rp_save_all(one.get(), state.get(), &options, saving.out()));
    EXPECT_OK(rp_save_finish(saving.get(), &result));
    return result.planned;
  };
  EXPECT_EQ(planned(state_of({{"w", kAll, host.data(), RP_HOST}}), 1), RP_FRESH);
  EXPECT_OK(rp_job_use_device(one.get(), 1));
  EXPECT_EQ(planned(state_of({{"w", kAll, memory.first()}}), 2), RP_REUSED);
  const Memory loaded(Bytes(kAll, 0xEE));
  EXPECT_EQ(load(one, state_of({{"w", kAll, loaded.first()}}), newest()), ok_);
  EXPECT_EQ(loaded.read() == numbers(kAll, 8), true);
}

TEST_F(Devices, are_in_order_with_the_stream_of_a_call) {
  const Job one = job(1);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const Memory memory(Bytes(kAll, 1));
  const State state =
      state_of({{"large", kLarge, memory.first()}, {"small", kSmall, memory.first() + kLarge}});
  cudaMemsetAsync(memory.first(), 2, kAll, stream);
  EXPECT_EQ(save(one, state, saved_as(1, stream)), ok_);
  cudaMemsetAsync(memory.first(), 3, kAll, stream);
  EXPECT_EQ(load(one, state, newest(stream)), ok_);
  Bytes expected(kLarge + kSmall, 2);
  expected.resize(kAll, 3);
  EXPECT_EQ(memory.read(stream) == expected, true);
  cudaStreamDestroy(stream);
}

TEST_F(Devices, of_another_number_are_refused_with_the_key) {
  reset({.schedule = Schedule::kLatest, .devices = 2});
  const Memory other(numbers(kSmall, 1), 1);
  const State state = state_of({{"w", kSmall, other.first()}});
  const Job first = job(1);
  EXPECT_THAT(save(first, state, saved_as(1)), Fails(RP_UNSUPPORTED, "key w]"));
  EXPECT_FALSE(is_saved(1));
  EXPECT_OK(rp_job_use_device(first.get(), 2));
  EXPECT_EQ(save(first, state, saved_as(1)), ok_);
  EXPECT_TRUE(is_saved(1));
}

TEST_F(Devices, do_not_reach_memory_of_the_host_that_is_said_to_be_theirs) {
  const Job one = job(1);
  const Bytes host = numbers(kSmall, 1);
  EXPECT_THAT(save(one, state_of({{"w", kSmall, host.data()}}), saved_as(1)),
              Fails(RP_UNSUPPORTED, "key w]"));
  EXPECT_FALSE(is_saved(1));
}

TEST_F(Devices, whose_work_never_ends_are_given_up_at_the_deadline) {
  const Memory memory(numbers(kAll, 1));
  const Job one = job(1, 200'000'000);
  const State state = state_of({{"w", kAll, memory.first()}});
  block(nullptr);
  EXPECT_THAT(save(one, state, saved_as(1)), Fails(RP_DEADLINE, ":0"));
  EXPECT_FALSE(is_saved(1));
  EXPECT_THAT(save(one, state, saved_as(1)), Fails(RP_DEADLINE, ":0"));
  let_go();  // so that the memory of this test can be freed
}

TEST_F(Devices, of_which_one_call_fails_fail_the_save_alone) {
  const Memory memory(numbers(kAll, 1));
  const State state = state_of({{"w", kAll, memory.first()}});
  Job one = job(1);
  EXPECT_EQ(save(one, state, saved_as(1)), ok_);
  const std::uint64_t before = calls();
  EXPECT_EQ(save(one, state, saved_as(2)), ok_);
  const std::uint64_t all = calls() - before;
  int failures = 0;
  for (std::uint64_t ahead = 1; ahead <= all; ++ahead) {
    const int step = 2 + static_cast<int>(ahead);
    let_fail(ahead);
    const auto result = save(one, state, saved_as(step));
    if (result == ok_) continue;  // of the end of a scope, say
    ++failures;
    EXPECT_THAT(result, Fails(RP_INTERNAL, "cuda")) << ahead;
    EXPECT_FALSE(is_saved(step)) << ahead;
    one = job(1);
    EXPECT_EQ(load(one, state, newest()), ok_) << ahead;
  }
  EXPECT_GT(failures, 10);
  EXPECT_EQ(memory.read() == numbers(kAll, 1), true);
}

TEST_F(Devices, that_are_lost_leave_the_host) {
  reset({.schedule = Schedule::kLatest, .sticky = true});
  const Memory memory(numbers(kAll, 1));
  const State state = state_of({{"w", kAll, memory.first()}});
  const Job one = job(1);
  EXPECT_EQ(save(one, state, saved_as(1)), ok_);
  let_fail(10);
  EXPECT_THAT(save(one, state, saved_as(2)), Fails(RP_INTERNAL, "cuda"));
  EXPECT_THAT(save(one, state, saved_as(2)), Fails(RP_INTERNAL, "cuda"));
  EXPECT_THAT(failure(rp_job_use_device(one.get(), 1)), Fails(RP_INTERNAL, "cuda"));
  EXPECT_OK(rp_job_use_device(one.get(), 0));
  Bytes loaded(kAll);
  EXPECT_EQ(load(one, state_of({{"w", kAll, loaded.data(), RP_HOST}}), newest()), ok_);
  EXPECT_EQ(loaded == numbers(kAll, 1), true);
  reset({});  // no call frees anything of a device that is lost
}

}  // namespace
}  // namespace reprise::models
