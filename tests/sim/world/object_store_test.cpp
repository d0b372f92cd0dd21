// Tests a store without rename: its objects, lists and leases, and writers whose lease is lost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/checkpoint/set_aside.hpp"
#include "core/checkpoint/stored_tracker.hpp"
#include "core/load/load_seamed.hpp"
#include "core/ports/no_progress.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "core/reshard/reshard.hpp"
#include "core/save/save_seamed.hpp"
#include "sim/mutants/mutants.hpp"
#include "sim/world/world.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/sim/world/tiny_job.hpp"

namespace reprise::sim::object_store_test {
namespace {

using contracts::code_of;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr StoreCapabilities kObjects = {.exchange = true, .renames = false, .lists_lag = true};

void put(Store& store, const std::string& path, std::string_view text) {
  write_durably(store, path, as_bytes(text));
}

std::string get(Store& store, const std::string& path) {
  return std::string(as_text(read_all(store, path, 1000)));
}

std::vector<std::string> names(Store& store, const std::string& directory = "") {
  std::vector<std::string> all;
  for (const Entry& entry : store.list(directory)) all.push_back(entry.name);
  return all;
}

TEST(ObjectStore, an_object_exists_once_it_is_put_and_survives_a_power_cut) {
  SimStore store("sim:", kObjects);
  put(store, "a", "old");
  auto file = store.create("a");
  file->write_at(0, as_bytes("new"));
  EXPECT_EQ(get(store, "a"), "old");
  store.crash();
  EXPECT_EQ(get(store, "a"), "old");
  file->close();
  store.crash();
  EXPECT_EQ(get(store, "a"), "new");
  store.create("b")->write_at(0, as_bytes("its writer dies"));
  EXPECT_FALSE(store.stat("b"));
}

TEST(ObjectStore, a_list_lags_behind_by_the_seed_and_what_it_misses_is_there) {
  const auto seen = [](std::uint64_t seed) {
    SimStore store("sim:", kObjects, seed);
    put(store, "a", "1");
    store.show_current_names();
    store.remove("a");
    put(store, "b", "2");
    EXPECT_FALSE(store.stat("a"));
    EXPECT_EQ(get(store, "b"), "2");
    std::vector<std::vector<std::string>> lists;
    for (int i = 0; i < 20; ++i) lists.push_back(names(store));
    store.show_current_names();
    EXPECT_THAT(names(store), ElementsAre("b"));
    return lists;
  };
  EXPECT_EQ(seen(1), seen(1));
  EXPECT_NE(seen(1), seen(2));
  EXPECT_THAT(seen(1), testing::Contains(ElementsAre("a")));
  EXPECT_THAT(seen(1), testing::Contains(ElementsAre("b")));
}

TEST(ObjectStore, a_tree_with_a_file_hidden_from_a_list_stays_marked) {
  const Aside left{"run/iter_0000001.saving-0123456789abcdef", kSavingSuffix, "0123456789abcdef"};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimStore store("sim:", kObjects, seed);
    store.make_directory(left.path);
    put(store, join_path(left.path, mark_of(left.token)), "");
    for (const char* name : {".metadata", "__0_0.distcp"}) {
      put(store, join_path(left.path, name), "x");
    }
    for (int saves = 0; saves < 3; ++saves) {
      if (store.stat(left.path) && is_own(store, left)) discard(store, left.path);
      store.show_current_names();
    }
    EXPECT_FALSE(store.stat(left.path)) << seed;
  }
}

TEST(ObjectStore, a_lease_is_taken_when_it_was_given_back_or_its_term_is_over) {
  SimStore store("sim:", kObjects);
  const auto is_locked = [&store] { return code_of([&] { store.lock("a"); }) == Code::kLocked; };
  auto first = store.lock("a");
  EXPECT_TRUE(is_locked());
  const std::string fence = first->token();
  first.reset();
  first = store.lock("a");
  EXPECT_GT(first->token(), fence);
  store.pass_term();
  put(store, "a.new", "1");
  store.publish({"a.new", "a", first.get()});  // allowed, since no other writer has taken the lease
  const auto second = store.lock("a");
  EXPECT_GT(second->token(), first->token());
  put(store, "a.new", "2");
  EXPECT_EQ(code_of([&] { store.publish({"a.new", "a", first.get()}); }), Code::kLocked);
  EXPECT_EQ(code_of([&] { store.put_aside({"a.old", "a", first.get()}); }), Code::kLocked);
  EXPECT_EQ(get(store, "a"), "1");
  first.reset();
  EXPECT_TRUE(is_locked()) << "the first writer must not release the second one's lease";
}

TEST(ObjectStore, a_writer_that_is_killed_leaves_its_lease_to_the_term) {
  SimStore store("sim:", kObjects);
  World world({.seed = 5, .world_size = 1}, store);
  world.run([&](Ports& ports, GlobalRank rank) {
    const auto lock = ports.store.lock("a");
    world.kill(rank);
  });
  EXPECT_EQ(code_of([&] { store.lock("a"); }), Code::kLocked);
  store.pass_term();
  EXPECT_EQ(code_of([&] { store.lock("a"); }), std::nullopt);
}

// ---- two writers

/// Returns `protocol` with one change: the step named `at` calls `between` before it does anything
/// else.
decltype(SaveSeams::commit) interrupted(decltype(SaveSeams::commit) protocol, const std::string& at,
                                        const std::function<void()>& between) {
  return [=](Store& store, CommitTarget& target, const CommitContent& content, Role role) {
    auto steps = protocol(store, target, content, role);
    for (ProtocolStep& step : steps) {
      if (step.name != at) continue;
      step.run = [between, run = std::move(step.run)] {
        between();
        run();
      };
    }
    return steps;
  };
}

void save(const Ports& ports, std::int64_t generation, std::int64_t step,
          const SaveSeams& seams = {}, std::optional<std::int32_t> keep = {}) {
  const TinyJob job(ports.fabric.rank(), ports.fabric.world_size(), generation);
  SaveOptions options;
  options.directory = "run";
  options.step = step;
  options.keep = keep;
  begin_save(ports, all_ranks(ports), job.state, options, {}, seams).finish();
}

/// The result of the first writer's save, and the generation that a load finds afterwards.
struct Ended {
  std::optional<Code> code;
  std::int64_t generation = 0;
};

class TwoWriters : public testing::Test {
 protected:
  TwoWriters() { mutant_named("store-fence-not-looked-at").apply(unfenced_); }

  /// Lets one writer save generation 1, and then save generation 2 over it. At the beginning of the
  /// step `at` of the second save, the writer's leases expire and `other` is called.
  Ended saves(const decltype(SaveSeams::commit)& protocol, const std::string& at,
              const std::function<void(const Ports&, SimStore&)>& other) {
    SimStore store("sim:", capabilities_);
    Ended ended;
    World world({.seed = 5, .world_size = 1}, store);
    const auto result = world.run([&](Ports& ports, GlobalRank) {
      save(ports, 1, 1);
      SaveSeams seams;
      seams.commit = interrupted(protocol, at, [&] {
        store.pass_term();
        other(ports, store);
      });
      ended.code = code_of([&] { save(ports, 2, 1, seams); });
      store.show_current_names();
      ended.generation = loaded(ports, "run");
    });
    EXPECT_EQ(result.ranks[0].end, RankEnd::kReturned) << result.ranks[0].message;
    return ended;
  }

  Policies unfenced_;
  StoreCapabilities capabilities_ = kObjects;
};

TEST_F(TwoWriters, one_that_lost_its_lease_makes_nothing_visible) {
  std::unique_ptr<StoreLock> taken;
  const auto take = [&taken](const Ports&, SimStore& store) {
    taken = store.lock("run/iter_0000001");
  };
  const Ended fenced = saves(commit_part, "swap_in", take);
  EXPECT_EQ(fenced.code, Code::kLocked);
  EXPECT_EQ(fenced.generation, 1);
  const Ended unfenced = saves(unfenced_.save.commit, "swap_in", take);
  EXPECT_EQ(unfenced.code, std::nullopt);
  EXPECT_EQ(unfenced.generation, 2) << "only the fence refuses it";
}

TEST_F(TwoWriters, one_whose_lease_was_taken_does_not_move_the_tracker_back) {
  const auto save_next = [](const Ports& ports, SimStore&) { save(ports, 3, 2); };
  const Ended fenced = saves(commit_part, "tracker", save_next);
  EXPECT_EQ(fenced.code, Code::kLocked);
  EXPECT_EQ(fenced.generation, 3);
  const Ended unfenced = saves(unfenced_.save.commit, "tracker", save_next);
  EXPECT_EQ(unfenced.code, std::nullopt);
  EXPECT_EQ(unfenced.generation, 2) << "only the fence prevents that";
}

TEST_F(TwoWriters, one_whose_lease_is_over_and_was_not_taken_goes_on) {
  const Ended ended = saves(commit_part, "swap_in", [](const Ports&, SimStore&) {});
  EXPECT_EQ(ended.code, std::nullopt);
  EXPECT_EQ(ended.generation, 2);
}

TEST_F(TwoWriters, one_that_lost_its_lease_keeps_what_the_other_set_aside) {
  capabilities_ = {.exchange = false, .renames = false};
  const std::string first = "run/iter_0000001";
  std::unique_ptr<StoreLock> taken;
  const auto set_aside = [&](const Ports&, SimStore& store) {
    taken = store.lock(first);
    mark_as_old(store, first, taken->token());
    store.put_aside({aside_path(first, kReplacedSuffix, taken->token()), first, taken.get()});
  };
  const Ended ended = saves(commit_part, "remove_replaced", set_aside);
  EXPECT_EQ(ended.code, std::nullopt);
  EXPECT_EQ(ended.generation, 2) << "it is the only copy";
}

/// On a store without exchange, a save moves the old checkpoint aside before it puts the new one in
/// its place. In this test, a save over the first iteration dies before it removes the old
/// checkpoint. When retention removes that iteration, it must remove both checkpoints.
TEST(ObjectStore, what_made_way_goes_when_its_iteration_does) {
  for (const bool renames : {true, false}) {
    SCOPED_TRACE(renames);
    SimStore store("sim:", {.exchange = false, .renames = renames});
    World world({.seed = 5, .world_size = 1}, store);
    const auto result = world.run([&](Ports& ports, GlobalRank) {
      save(ports, 1, 1);
      SaveSeams seams;
      seams.commit =
          interrupted(commit_part, "remove_replaced", [] { throw Error(Code::kIo, "it dies"); });
      EXPECT_EQ(code_of([&] { save(ports, 2, 1, seams); }), Code::kIo);
      ASSERT_THAT(names(store, "run"), testing::Contains(HasSubstr(kReplacedSuffix)));
      save(ports, 3, 2, {}, 1);
      EXPECT_EQ(loaded(ports, "run"), 3);
    });
    EXPECT_EQ(result.ranks[0].end, RankEnd::kReturned) << result.ranks[0].message;
    EXPECT_THAT(names(store, "run"),
                ElementsAre("iter_0000002", "latest_checkpointed_iteration.txt"));
  }
}

/// Reshards the newest checkpoint and writes the result to `out`. Calls `last_look` immediately
/// before the commit.
void reshard_out(const Ports& ports, const std::function<void()>& last_look = {}) {
  Checkpoint source = Checkpoint::open(ports.store, "run");
  NoProgress progress;
  ReshardOptions options;
  options.rule = [](const std::string&, const Dims&) { return Cut{0, 2}; };
  options.writers = 2;
  options.last_look = last_look;
  reshard(source, {"out"}, options,
          {ports.store, ports.device, ports.tasks, ports.trace, progress});
}

TEST(ObjectStore, reshard_publishes_replaces_and_keeps_to_its_lease) {
  SimStore store("sim:", kObjects);
  World world({.seed = 5, .world_size = 1}, store);
  const auto result = world.run([&](Ports& ports, GlobalRank) {
    save(ports, 1, 1);
    reshard_out(ports);
    EXPECT_EQ(loaded(ports, "out"), 1);
    save(ports, 2, 2);
    reshard_out(ports);
    EXPECT_EQ(loaded(ports, "out"), 2);
    save(ports, 3, 3);
    std::unique_ptr<StoreLock> taken;
    const auto take = [&] {
      store.pass_term();
      taken = store.lock("out");
    };
    EXPECT_EQ(code_of([&] { reshard_out(ports, take); }), Code::kLocked);
    EXPECT_EQ(loaded(ports, "out"), 2);
  });
  EXPECT_EQ(result.ranks[0].end, RankEnd::kReturned) << result.ranks[0].message;
}

}  // namespace
}  // namespace reprise::sim::object_store_test
