// Tests the state of the simulated store after a crash, and copies between stores.
#include "sim/world/sim_store.hpp"
#include "core/ports/whole_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST_F(Crash, move_between_directories_with_one_side_synced_leaves_two_trees_that_are_apart) {
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
