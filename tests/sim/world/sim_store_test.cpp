// Tests the state of the simulated store after a crash, and copies between stores.
#include "sim/world/sim_store.hpp"
#include "core/ports/whole_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/world/copy_tree.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::sim {
namespace {

void put(Store& store, const std::string& path, std::string_view text) {
  store.create(path)->write_at(0, as_bytes(text));
}
void put_synced(Store& store, const std::string& path, std::string_view text) {
  const auto file = store.create(path);
  file->write_at(0, as_bytes(text));
  file->sync();
}
std::string get(Store& store, const std::string& path) {
  if (!store.stat(path)) return "(nothing)";
  return std::string(as_text(read_all(store, path, 1000)));
}

struct Crash : testing::Test {
  SimStore store;
};

TEST_F(Crash, synced_content_without_a_synced_name_is_gone) {
  put_synced(store, "a", "x");
  store.crash();
  EXPECT_EQ(get(store, "a"), "(nothing)");
}

TEST_F(Crash, synced_name_without_synced_content_is_an_empty_file) {
  put(store, "a", "x");
  store.sync_directory("");
  store.crash();
  EXPECT_EQ(get(store, "a"), "");
}

TEST_F(Crash, content_and_name_synced_survive_and_later_writes_do_not) {
  const auto file = store.create("a");
  file->write_at(0, as_bytes("old"));
  file->sync();
  store.sync_directory("");
  file->write_at(0, as_bytes("new and longer"));
  store.crash();
  EXPECT_EQ(get(store, "a"), "old");
  file->write_at(0, as_bytes("from before the crash"));
  file->sync();
  EXPECT_EQ(get(store, "a"), "old") << "a file opened before the crash changed the store after it";
  store.crash();
  EXPECT_EQ(get(store, "a"), "old");
}

TEST_F(Crash, truncation_that_was_not_synced_is_undone) {
  write_atomically(store, "a", as_bytes("old"));
  put(store, "a", "");
  EXPECT_EQ(get(store, "a"), "");
  store.crash();
  EXPECT_EQ(get(store, "a"), "old");
}

TEST_F(Crash, removed_names_come_back_unless_their_directory_was_synced) {
  write_atomically(store, "a", as_bytes("a"));
  write_atomically(store, "b", as_bytes("b"));
  store.remove("a");
  store.crash();
  EXPECT_EQ(get(store, "a"), "a");
  store.remove("a");
  store.sync_directory("");
  store.crash();
  EXPECT_EQ(get(store, "a"), "(nothing)");
  EXPECT_EQ(get(store, "b"), "b");
}

TEST_F(Crash, rename_over_a_file_is_old_or_new) {
  write_atomically(store, "tracker", as_bytes("old"));
  put_synced(store, "tracker.tmp", "new");
  store.publish({"tracker.tmp", "tracker"});
  EXPECT_EQ(get(store, "tracker"), "new");
  store.crash();
  EXPECT_EQ(get(store, "tracker"), "old");
  put_synced(store, "tracker.tmp", "new");
  store.publish({"tracker.tmp", "tracker"});
  store.sync_directory("");
  store.crash();
  EXPECT_EQ(get(store, "tracker"), "new");
  EXPECT_EQ(get(store, "tracker.tmp"), "(nothing)");
}

TEST_F(Crash, exchange_is_undone_unless_both_parents_were_synced) {
  for (const std::string name : {"a", "b"}) {
    store.make_directory(name);
    put_synced(store, name + "/who", name);
    store.sync_directory(name);
  }
  store.sync_directory("");
  store.replace({"a", "b"});
  EXPECT_EQ(get(store, "a/who"), "b");
  store.crash();
  EXPECT_EQ(get(store, "a/who"), "a");
  store.replace({"a", "b"});
  store.sync_directory("");
  store.crash();
  EXPECT_EQ(get(store, "a/who"), "b");
  EXPECT_EQ(get(store, "b/who"), "a");
}

TEST_F(Crash, every_directory_on_the_way_must_be_synced) {
  store.make_directory("a/b");
  put_synced(store, "a/b/f", "x");
  store.sync_directory("a/b");
  store.sync_directory("a");
  store.crash();
  EXPECT_TRUE(store.list("").empty());
}

TEST_F(Crash, a_move_with_one_directory_synced_leaves_two_separate_trees) {
  store.make_directory("from/d");
  store.make_directory("to");
  put(store, "from/d/f", "x");
  store.sync_all();
  store.publish({"from/d", "to/d"});
  store.sync_directory("to");
  store.crash();
  EXPECT_EQ(get(store, "from/d/f"), "x");
  EXPECT_EQ(get(store, "to/d/f"), "x");
  store.remove("to/d/f");
  EXPECT_EQ(get(store, "from/d/f"), "x");
}

/// Returns what is at the two names of an unsynced rename over an old file, for many seeds.
std::set<std::string> left_of_a_rename(bool is_synced) {
  std::set<std::string> left;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimStore store;
    write_atomically(store, "tracker", as_bytes("old"));
    (is_synced ? put_synced : put)(store, "tracker.tmp", "newer");
    store.publish({"tracker.tmp", "tracker"});
    store.crash_keeping_some(seed);
    left.insert(get(store, "tracker") + ", " + get(store, "tracker.tmp"));
  }
  return left;
}

TEST_F(Crash, any_unsynced_subset_survives_but_a_rename_only_as_a_whole) {
  EXPECT_THAT(left_of_a_rename(true),
              testing::UnorderedElementsAre("old, (nothing)", "old, newer", "newer, (nothing)"));
  const std::string zeros(5, '\0');
  EXPECT_THAT(
      left_of_a_rename(false),
      testing::UnorderedElementsAre("old, (nothing)", "old, ", "old, " + zeros, "old, newer",
                                    ", (nothing)", zeros + ", (nothing)", "newer, (nothing)"));
}

TEST_F(Crash, blocks_of_a_file_survive_one_by_one_and_synced_ones_always) {
  const std::string old(3 * kCrashBlock, 'a');
  std::set<std::string> left;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimStore fresh;
    write_atomically(fresh, "f", as_bytes(old));
    put(fresh, "f", std::string(3 * kCrashBlock, 'b'));
    put(fresh, "g", "unsynced");
    fresh.crash_keeping_some(seed);
    const std::string now(as_text(read_all(fresh, "f", 10000)));
    ASSERT_EQ(now.size(), old.size());
    left.insert({now[0], now[kCrashBlock], now[2 * kCrashBlock]});
    fresh.crash();
    EXPECT_EQ(as_text(read_all(fresh, "f", 10000)), now) << "what survived is durable";
  }
  EXPECT_EQ(left.size(), 8U);
}

TEST_F(Crash, the_subset_that_survives_is_the_seeds_alone) {
  const auto after = [](std::uint64_t seed) {
    SimStore fresh;
    for (const char* name : {"a", "b", "c", "d", "e"}) put_synced(fresh, name, name);
    fresh.crash_keeping_some(seed);
    std::string names;
    for (const Entry& entry : fresh.list("")) names += entry.name;
    return names;
  };
  EXPECT_EQ(after(3), after(3));
  std::set<std::string> all;
  for (std::uint64_t seed = 0; seed < 400; ++seed) all.insert(after(seed));
  EXPECT_EQ(all.size(), 32U);
}

TEST_F(Crash, a_copy_of_the_store_shows_a_crash_while_the_store_goes_on) {
  put_synced(store, "a", "x");
  std::vector<std::string> asked;
  SimStore none = store.crashed([&asked](const UnsyncedChange& change) {
    asked.push_back(change.path);
    return false;
  });
  SimStore all = store.crashed([](const UnsyncedChange&) { return true; });
  EXPECT_EQ(asked, std::vector<std::string>{""});
  EXPECT_EQ(get(none, "a"), "(nothing)");
  EXPECT_EQ(get(all, "a"), "x");
  EXPECT_EQ(get(store, "a"), "x");
}

TEST_F(Crash, orderly_shutdown_keeps_everything) {
  store.make_directory("a/b");
  put(store, "a/b/f", "x");
  store.sync_all();
  store.crash();
  EXPECT_EQ(get(store, "a/b/f"), "x");
}

TEST(CopyTree, copies_files_and_empty_directories_durably) {
  SimStore source;
  source.make_directory("a/empty");
  put(source, "a/f", std::string(1000, 'x'));
  put(source, "g", "");
  SimStore target;
  copy_tree({.store = source}, {.store = target, .directory = "copies/one"});
  target.sync_directory("copies");
  target.sync_directory("");
  target.crash();
  EXPECT_EQ(get(target, "copies/one/a/f"), std::string(1000, 'x'));
  EXPECT_EQ(get(target, "copies/one/g"), "");
  EXPECT_TRUE(target.stat("copies/one/a/empty")->directory);
}

}  // namespace
}  // namespace reprise::sim
