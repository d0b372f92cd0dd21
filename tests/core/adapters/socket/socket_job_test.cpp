// Saves and loads over TCP by the public interface alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <numeric>
#include <thread>

#include "reprise/reprise.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/core/adapters/socket/rank_process.hpp"
#include "tests/core/adapters/socket/socket_ranks.hpp"

namespace reprise::contracts {
namespace {

/// What one rank holds of a tensor that is split by rows.
struct Rows {
  explicit Rows(const Job& job)
      : shard(sharded({37, 5}, Mesh({{"dp", job.world_size()}}), {{"dp", 0}}, job.rank())),
        values(shard.local_elements()) {
    state.add("w", shard, values.data());
  }
  void fill(float add) { std::ranges::copy(expected(add), values.begin()); }
  std::vector<float> expected(float add) const {
    std::vector<float> all(values.size());
    std::iota(all.begin(), all.end(), static_cast<float>(shard.offset[0] * 5) + add);
    return all;
  }

  Sharded shard;
  std::vector<float> values;
  State state;
};

struct SocketJob : testing::Test {
  SocketOptions rank(std::int32_t number, std::int32_t size) const {
    return {.rank = number, .size = size, .address = address, .deadline = seconds(60)};
  }
  TemporaryDirectory directory;
  FreeAddress free;
  std::string address = free.text;
};

TEST_F(SocketJob, of_four_ranks_saves_what_jobs_of_any_size_load) {
  expect_none(errors_of(4, [&](std::int32_t number) {
    Job job = socket_job(directory.path(), rank(number, 4));
    Rows rows(job);
    rows.fill(0);
    save(job, rows.state, {.directory = "run"});
  }));
  for (const std::int32_t size : {1, 3, 7}) {
    expect_none(errors_of(size, [&](std::int32_t number) {
      Job job = socket_job(directory.path(), rank(number, size));
      EXPECT_EQ(job.world_size(), size);
      Rows rows(job);
      load(job, rows.state, {.directory = "run"});
      EXPECT_EQ(rows.values, rows.expected(0));
    }));
  }
}

/// Rank 1 comes to the save only when rank 0 has left it.
TEST_F(SocketJob, that_is_told_to_stop_leaves_a_wait_for_other_ranks) {
  std::atomic<bool> left = false;
  const auto errors = errors_of(2, [&](std::int32_t number) {
    JobOptions options;
    std::atomic<bool> waits = false;
    if (number == 0) options.interrupted = [&] { return waits.load(); };
    Job job = socket_job(directory.path(), rank(number, 2), options);
    Rows rows(job);
    rows.fill(0);
    if (number == 1) {
      while (!left) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    waits = true;
    const auto error = error_of([&] { save(job, rows.state, {.directory = "run"}); });
    left = true;
    EXPECT_EQ(error->code(), Code::kInterrupted) << error->what();
    EXPECT_THAT(error->what(), testing::HasSubstr("waited for rank 1"));
  });
  expect_none(errors);
}

TEST_F(SocketJob, a_killed_rank_fails_all_others_and_the_old_checkpoint_stays) {
  const auto train = [this](std::int32_t number) {
    Job job = socket_job(directory.path(), rank(number, 3));
    Rows rows(job);
    rows.fill(1);
    save(job, rows.state, {.directory = "run", .step = 1});
    for (std::int64_t step = 2;; ++step) {
      if (number == 2) ::raise(SIGKILL);
      rows.fill(2);
      save(job, rows.state, {.directory = "run", .step = step});
    }
  };
  std::deque<RankProcess> others;
  for (const std::int32_t number : {1, 2}) {
    others.emplace_back([&, number] {
      train(number);
      return std::string();
    });
  }
  const auto error = error_of([&] { train(0); });
  for (const std::string& said : {std::string(error->what()), others[0].said()}) {
    EXPECT_THAT(said, testing::StartsWith("PEER_FAILED: "));
    EXPECT_THAT(said, testing::HasSubstr("rank 2 has ended"));
  }
  Job job = local_job(directory.path());
  Rows rows(job);
  EXPECT_EQ(load(job, rows.state, {.directory = "run"}).step, 1);
  EXPECT_EQ(rows.values, rows.expected(1));
}

}  // namespace
}  // namespace reprise::contracts
