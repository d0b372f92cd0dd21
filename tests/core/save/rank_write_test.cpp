// Tests one rank's part of a save. It begins with the rank's share of the plan, and ends with the
// catalogue that is made from the votes of all ranks.
#include "core/save/rank_write.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/ports/passing_store.hpp"
#include "core/save/save.hpp"
#include "core/save/save_commit.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/fixtures/round_trip.hpp"

namespace reprise::rank_write_test {
namespace {

using contracts::code_of;
using contracts::run_ranks;
using contracts::TemporaryDirectory;
using testing_job::RankState;

constexpr std::int32_t kRanks = 2;

/// The state of one of two ranks: half of one tensor, the whole of another, and on rank 0 an
/// object.
RankState state_of(GlobalRank rank) {
  RankState state({{"halves", DType::kFloat32, {6, 5}, Placement({{"tp", 0}})},
                   {"whole", DType::kInt64, {700}, {}}},
                  testing_job::mesh_of({{"tp", kRanks}}), rank);
  testing_job::fill(state.state);
  if (rank.value == 0) {
    state.state.objects.push_back(
        {.key = "notes", .grid = {1}, .coordinate = {0}, .value = Value("text")});
  }
  return state;
}

GlobalPlan plan_of_both() {
  std::vector<LocalPlan> offers;
  for (std::int32_t r = 0; r < kRanks; ++r) offers.push_back(local_plan(state_of({r}).state, {r}));
  return global_plan(offers);
}

std::vector<std::string> keys_of(const WriteShare& share) {
  std::vector<std::string> keys;
  for (const ImageItem& item : share.items) keys.push_back(item.key);
  return keys;
}

TEST(RankWrite, a_share_is_what_the_plan_assigns_to_the_rank) {
  const GlobalPlan plan = plan_of_both();
  std::size_t whole = 0;
  for (std::int32_t r = 0; r < kRanks; ++r) {
    const RankState state = state_of({r});
    const WriteShare share = share_of(plan, {r}, state.state);
    const auto keys = keys_of(share);
    ASSERT_EQ(share.origins.size(), share.items.size());
    EXPECT_EQ(std::count(keys.begin(), keys.end(), "halves"), 1);
    whole += static_cast<std::size_t>(std::count(keys.begin(), keys.end(), "whole"));
    EXPECT_EQ(keys.front() == "notes/shard_0_1", r == 0) << keys.front();
    for (std::size_t i = 0; i < share.items.size(); ++i) {
      const ImageItem& item = share.items[i];
      const TensorLeaf* leaf = share.origins[i].leaf;
      EXPECT_EQ(leaf == nullptr ? "" : leaf->key, item.content.empty() ? item.key : "");
    }
  }
  EXPECT_EQ(whole, 1U);
}

TEST(RankWrite, a_plan_of_another_state_is_refused) {
  const GlobalPlan plan = plan_of_both();
  RankState renamed = state_of({0});
  renamed.state.tensors[0].key = "other";
  EXPECT_EQ(code_of([&] { share_of(plan, {0}, renamed.state); }), Code::kStalePlan);
  const RankState moved = state_of({1});
  EXPECT_EQ(code_of([&] { share_of(plan, {0}, moved.state); }), Code::kStalePlan);
  RankState without_object = state_of({0});
  without_object.state.objects.clear();
  EXPECT_EQ(code_of([&] { share_of(plan, {0}, without_object.state); }), Code::kStalePlan);
}

TEST(RankWrite, the_bound_for_small_tensors_counts_what_the_rank_writes) {
  const TemporaryDirectory directory;
  run_ranks(1, directory.path(), [&](const Ports& ports) {
    const auto costs_of = [&](std::vector<ImageItem> items) {
      RankWrite write(ports, SaveSeams{});
      WriteShare share;
      share.origins.resize(items.size());
      share.items = std::move(items);
      write.snapshot(std::move(share), "", {0}, {});
      write.wait();
      return write.costs();
    };
    const auto object = [](std::size_t size) {
      return ImageItem{.key = "notes", .extent = {}, .content = Bytes(size)};
    };
    const auto nothing = costs_of({});
    EXPECT_EQ(nothing.bound_staging, 0U);
    const auto small = costs_of({object(5'000'000)});
    EXPECT_GE(small.bound_staging, 5'000'000U);
    EXPECT_EQ(small.bound_empty, nothing.bound_empty + small.bound_staging);
  });
}

TEST(RankWrite, the_votes_say_where_the_plan_stands) {
  const GlobalPlan plan = plan_of_both();
  const TemporaryDirectory directory;
  std::mutex lock;
  run_ranks(kRanks, directory.path(), [&](const Ports& ports) {
    const auto group = ports.fabric.communicator(Group::world(kRanks));
    const RankState state = state_of(ports.fabric.rank());
    RankWrite write(ports, SaveSeams{});
    write.snapshot(share_of(plan, group->rank(), state.state), "", group->rank(), {});
    write.wait();
    EXPECT_TRUE(write.through());
    const auto votes = poll_votes(*group, write);
    ASSERT_EQ(votes.size(), static_cast<std::size_t>(kRanks));
    EXPECT_EQ(write.costs().bytes, ports.store.stat(payload_name(group->rank()))->size);

    const std::lock_guard<std::mutex> hold(lock);
    const CommitContent content = content_of(plan, {.directory = "there", .step = Step{3}}, votes);
    ASSERT_EQ(content.payload.size(), 2U);
    EXPECT_EQ(content.payload[1].name, "__1_0.distcp");
    EXPECT_EQ(content.metadata.checkpoint_id, "there");
    const Catalog& catalog = content.metadata.catalog;
    ASSERT_EQ(catalog.objects.size(), 1U);
    ASSERT_EQ(catalog.tensors.size(), 2U);
    ASSERT_EQ(catalog.tensors[0].chunks.size(), 2U);
    EXPECT_NE(catalog.tensors[0].chunks[0].file, catalog.tensors[0].chunks[1].file);

    const auto same_twice = std::vector<Bytes>{votes[0], votes[0]};
    EXPECT_EQ(code_of([&] { content_of(plan, {.directory = "there", .step = {}}, same_twice); }),
              Code::kCollectiveMismatch);
    const ByteSpan torn = ByteSpan(votes[0]).first(votes[0].size() - 1);
    EXPECT_EQ(code_of([&] { decode_written(torn); }), Code::kCollectiveMismatch);
  });
}

TEST(RankWrite, a_rank_without_items_votes_for_no_file) {
  const TemporaryDirectory directory;
  run_ranks(1, directory.path(), [&](const Ports& ports) {
    const auto group = ports.fabric.communicator(Group::world(1));
    RankWrite write(ports, SaveSeams{});
    write.snapshot({}, "", {0}, {});
    const auto votes = poll_votes(*group, write);
    ASSERT_EQ(votes.size(), 1U);
    EXPECT_TRUE(decode_written(votes[0]).empty());
    EXPECT_FALSE(ports.store.stat(payload_name({0})));
    EXPECT_TRUE(content_of({}, {.directory = "there", .step = {}}, votes).payload.empty());
  });
}

/// Delays work until somebody waits for it, and records when the work is done.
class LateTasks final : public Tasks {
 public:
  explicit LateTasks(std::vector<std::string>& events) : events_(events) {}
  std::unique_ptr<Task> start(std::function<void()> work) override {
    return std::make_unique<Late>(std::move(work), events_);
  }

 private:
  class Late final : public Task {
   public:
    Late(std::function<void()> work, std::vector<std::string>& events)
        : work_(std::move(work)), events_(events) {}
    ~Late() override { wait(); }
    bool done() override { return !work_; }
    void wait() override {
      if (!work_) return;
      std::exchange(work_, nullptr)();
      events_.emplace_back("written");
    }

   private:
    std::function<void()> work_;
    std::vector<std::string>& events_;
  };

  std::vector<std::string>& events_;
};

/// Records when a lock is released.
class ToldLocks final : public PassingStore {
 public:
  ToldLocks(Store& inner, std::vector<std::string>& events)
      : PassingStore(inner), events_(events) {}
  std::unique_ptr<StoreLock> lock(const std::string& path) override {
    return std::make_unique<Told>(PassingStore::lock(path), events_);
  }

 private:
  class Told final : public StoreLock {
   public:
    Told(std::unique_ptr<StoreLock> inner, std::vector<std::string>& events)
        : StoreLock(inner->token(), inner->warning()), inner_(std::move(inner)), events_(events) {}
    ~Told() override { events_.emplace_back("unlocked"); }

   private:
    std::unique_ptr<StoreLock> inner_;
    std::vector<std::string>& events_;
  };

  std::vector<std::string>& events_;
};

TEST(RankWrite, a_file_in_writing_is_pending_and_holds_up_nobody_who_asks) {
  const TemporaryDirectory directory;
  run_ranks(1, directory.path(), [&](const Ports& ports) {
    std::vector<std::string> events;
    LateTasks tasks(events);
    const Ports late{ports.store, ports.fabric, ports.device, tasks, ports.trace};
    const auto group = ports.fabric.communicator(Group::world(1));
    RankState state({{"whole", DType::kInt64, {700}, {}}}, testing_job::mesh_of({{"dp", 1}}), {0});
    testing_job::fill(state.state);
    RankWrite write(late, SaveSeams{});
    const std::vector<LocalPlan> offers = {local_plan(state.state, {0})};
    write.snapshot(share_of(global_plan(offers), {0}, state.state), "", {0}, {});
    EXPECT_FALSE(write.through());
    EXPECT_TRUE(poll_votes(*group, write).empty());
    EXPECT_TRUE(events.empty()) << "asking must not wait for the file";
    write.wait();
    EXPECT_TRUE(write.through());
    EXPECT_EQ(poll_votes(*group, write).size(), 1U);
  });
}

TEST(RankWrite, a_save_dropped_in_flight_writes_nothing_after_unlocking) {
  const TemporaryDirectory directory;
  run_ranks(1, directory.path(), [&](const Ports& ports) {
    std::vector<std::string> events;
    LateTasks tasks(events);
    ToldLocks store(ports.store, events);
    const Ports late{store, ports.fabric, ports.device, tasks, ports.trace};
    RankState state({{"whole", DType::kInt64, {700}, {}}}, testing_job::mesh_of({{"dp", 1}}), {0});
    state.state.common = Dict{};
    SaveOptions settings;
    settings.directory = "run";
    settings.step = 1;
    {
      const Save save = Save::begin(late, ports.fabric.communicator(Group::world(1)), state.state,
                                    std::move(settings));
      events.clear();
    }
    ASSERT_GE(events.size(), 2U);
    EXPECT_EQ(events.front(), "written");
    EXPECT_EQ(events.back(), "unlocked");
    EXPECT_TRUE(std::is_sorted(events.rbegin(), events.rend()));  // no write follows an unlock
  });
}

}  // namespace
}  // namespace reprise::rank_write_test
