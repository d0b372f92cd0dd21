#pragma once
// Contains the tests that every store must pass. A test file defines a fixture factory and
// instantiates the suite:
//
//   struct MyStores { std::unique_ptr<Store> make(); };  // an empty store
//   INSTANTIATE_TYPED_TEST_SUITE_P(My, StoreContract, MyStores);

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/ports/whole_file.hpp"
#include "reprise/store.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::contracts {

template <class Stores>
class StoreContract : public testing::Test {
 protected:
  Stores stores_;
  std::unique_ptr<Store> owner_ = stores_.make();
  Store& store_ = *owner_;

  void put(const std::string& path, std::string_view text) {
    const auto file = store_.create(path);
    file->write_at(0, as_bytes(text));
    file->close();
  }
  std::string get(const std::string& path) {
    return std::string(as_text(read_all(store_, path, 1U << 20U)));
  }
  std::vector<std::string> names(const std::string& directory) {
    std::vector<std::string> all;
    for (const auto& entry : store_.list(directory)) {
      all.push_back(entry.name + (entry.directory ? "/" : ""));
    }
    return all;
  }
};

TYPED_TEST_SUITE_P(StoreContract);

TYPED_TEST_P(StoreContract, what_was_written_is_read_at_any_offset) {
  const auto file = this->store_.create("a.bin");
  file->write_at(0, as_bytes("hello "));
  file->write_at(6, as_bytes("world"));
  file->write_at(0, as_bytes("J"));
  file->sync();
  file->close();
  const auto read = this->store_.open("a.bin");
  ASSERT_EQ(read->size(), 11U);
  Bytes middle(5);
  read->read_at(4, middle);
  EXPECT_EQ(as_text(middle), "o wor");
  read->read_at(11, MutableByteSpan{});
  EXPECT_EQ(this->get("a.bin"), "Jello world");
}

TYPED_TEST_P(StoreContract, parts_are_filled_in_order_and_a_short_file_is_torn) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::to_string(i) + ' ';
  this->put("a.bin", text);
  const auto file = this->store_.open("a.bin");
  for (const std::size_t count : {0U, 1U, 3U, 16U, 17U, 40U}) {
    std::vector<Bytes> memory;
    std::vector<MutableByteSpan> parts;
    for (std::size_t p = 0; p < count; ++p) memory.emplace_back(p % 4 == 2 ? 0 : 1 + p % 9);
    for (Bytes& part : memory) parts.emplace_back(part);
    file->read_parts(7, parts);
    std::string all;
    for (const Bytes& part : memory) all += as_text(part);
    EXPECT_EQ(all, text.substr(7, all.size())) << count;
  }
  Bytes first(3);
  Bytes second(5);
  const std::vector<MutableByteSpan> parts = {first, second};
  const auto failed = error_of([&] { file->read_parts(text.size() - 4, parts); });
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code(), Code::kTornFile);
}

TYPED_TEST_P(StoreContract, bytes_that_were_never_written_are_zero) {
  const auto file = this->store_.create("gap");
  file->write_at(3, as_bytes("x"));
  file->close();
  EXPECT_EQ(this->get("gap"), std::string("\0\0\0x", 4));
}

TYPED_TEST_P(StoreContract, create_truncates_what_was_there) {
  this->put("a", "a long text");
  this->put("a", "short");
  EXPECT_EQ(this->get("a"), "short");
}

TYPED_TEST_P(StoreContract, a_short_file_is_torn_and_the_error_has_the_offset_of_its_end) {
  this->put("a", "12345");
  const auto read = this->store_.open("a");
  Bytes out(10);
  const auto error = error_of([&] { read->read_at(2, out); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kTornFile);
  EXPECT_EQ(error->place().file, this->store_.display("a"));
  EXPECT_EQ(error->place().offset, 5U);
  EXPECT_EQ(code_of([&] { read->read_at(99, out); }), Code::kTornFile);
}

TYPED_TEST_P(StoreContract, stat_tells_files_directories_and_nothing_apart) {
  this->store_.make_directory("d/e");
  this->put("d/f", "123");
  const auto file = this->store_.stat("d/f");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->name, "f");
  EXPECT_FALSE(file->directory);
  EXPECT_EQ(file->size, 3U);
  const auto directory = this->store_.stat("d/e");
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->name, "e");
  EXPECT_TRUE(directory->directory);
  EXPECT_TRUE(this->store_.stat("")->directory);
  EXPECT_FALSE(this->store_.stat("d/x"));
  EXPECT_FALSE(this->store_.stat("x/y"));
  EXPECT_FALSE(this->store_.stat("d/f/y"));
}

TYPED_TEST_P(StoreContract, list_is_sorted_by_bytes_and_not_recursive) {
  this->store_.make_directory("d/b");
  for (const char* name : {"d/c", "d/B", "d/a", "d/b/inner", "d/.metadata", "d/__0_0.distcp"}) {
    this->put(name, "x");
  }
  EXPECT_THAT(this->names("d"),
              testing::ElementsAre(".metadata", "B", "__0_0.distcp", "a", "b/", "c"));
  EXPECT_THAT(this->names(""), testing::ElementsAre("d/"));
  EXPECT_EQ(this->store_.list("d").back().size, 1U);
}

TYPED_TEST_P(StoreContract, what_is_not_there_is_not_found_and_named) {
  this->put("f", "x");
  EXPECT_EQ(code_of([&] { this->store_.open("x"); }), Code::kNotFound);
  EXPECT_EQ(code_of([&] { this->store_.open("f/x"); }), Code::kNotFound);
  EXPECT_EQ(code_of([&] { this->store_.create("no/x"); }), Code::kNotFound);
  EXPECT_EQ(code_of([&] { this->store_.list("no"); }), Code::kNotFound);
  EXPECT_EQ(code_of([&] { this->store_.list("f"); }), Code::kNotFound);
  EXPECT_EQ(code_of([&] { this->store_.publish({"y.new", "y"}); }), Code::kNotFound);
  EXPECT_EQ(code_of([&] { this->store_.publish({"no/y.new", "no/y"}); }), Code::kNotFound);
  EXPECT_EQ(code_of([&] { this->store_.put_aside({"y.old", "y"}); }), Code::kNotFound);
  EXPECT_EQ(code_of([&] { this->store_.sync_directory("no"); }), Code::kNotFound);
  EXPECT_EQ(error_of([&] { this->store_.open("x"); })->place().file, this->store_.display("x"));
}

TYPED_TEST_P(StoreContract, directory_is_no_file_and_file_is_no_directory) {
  this->store_.make_directory("d");
  this->put("f", "x");
  EXPECT_EQ(code_of([&] { this->store_.open("d"); }), Code::kIo);
  EXPECT_EQ(code_of([&] { this->store_.create("d"); }), Code::kIo);
  EXPECT_EQ(code_of([&] { this->store_.make_directory("f"); }), Code::kIo);
  EXPECT_EQ(this->get("f"), "x");
}

TYPED_TEST_P(StoreContract, make_directory_makes_parents_and_repeats_without_error) {
  this->store_.make_directory("a/b/c");
  this->store_.make_directory("a/b/c");
  this->store_.make_directory("a");
  this->store_.make_directory("");
  EXPECT_THAT(this->names("a/b"), testing::ElementsAre("c/"));
}

TYPED_TEST_P(StoreContract, publish_gives_the_new_name_and_replaces_an_existing_file) {
  this->store_.make_directory("d.new/e");
  this->put("d.new/e/f", "inner");
  this->put("b.new", "new");
  this->put("b", "old");
  this->store_.publish({"b.new", "b"});
  EXPECT_EQ(this->get("b"), "new");
  this->store_.publish({"d.new", "d"});
  EXPECT_EQ(this->get("d/e/f"), "inner");
  EXPECT_THAT(this->names(""), testing::ElementsAre("b", "d/"));
}

TYPED_TEST_P(StoreContract, what_is_put_aside_has_its_name_no_more_and_may_get_it_back) {
  this->store_.make_directory("d");
  this->put("d/f", "inner");
  this->store_.put_aside({"d.old", "d"});
  EXPECT_FALSE(this->store_.stat("d/f"));
  EXPECT_EQ(this->get("d.old/f"), "inner");
  this->store_.publish({"d.old", "d"});
  EXPECT_EQ(this->get("d/f"), "inner");
  EXPECT_THAT(this->names(""), testing::ElementsAre("d/"));
}

TYPED_TEST_P(StoreContract, a_directory_in_the_way_is_refused_even_if_it_is_empty) {
  this->store_.make_directory("b.new");
  this->store_.make_directory("b");
  this->put("b.file", "x");
  EXPECT_EQ(code_of([&] { this->store_.publish({"b.new", "b"}); }), Code::kIo);
  EXPECT_EQ(code_of([&] { this->store_.publish({"b.file", "b"}); }), Code::kIo);
  EXPECT_EQ(code_of([&] { this->store_.put_aside({"b.new", "b"}); }), Code::kIo);
  EXPECT_THAT(this->names(""), testing::ElementsAre("b/", "b.file", "b.new/"));
}

TYPED_TEST_P(StoreContract, replace_swaps_two_directories_or_says_unsupported) {
  this->store_.make_directory("p/b.new");
  this->store_.make_directory("p/b");
  this->put("p/b.new/one", "1");
  this->put("p/b/two", "2");
  if (const auto code = code_of([&] { this->store_.replace({"p/b.new", "p/b"}); })) {
    EXPECT_EQ(code, Code::kUnsupported);
    EXPECT_EQ(this->get("p/b.new/one"), "1");
    return;
  }
  EXPECT_EQ(this->get("p/b/one"), "1");
  EXPECT_EQ(this->get("p/b.new/two"), "2");
  EXPECT_THAT(this->names("p/b"), testing::ElementsAre("one"));
  EXPECT_EQ(code_of([&] { this->store_.replace({"p/c.new", "p/c"}); }), Code::kNotFound);
}

TYPED_TEST_P(StoreContract, other_names_are_given_by_stores_that_rename) {
  this->store_.make_directory("d");
  this->put("d/a", "1");
  const auto code = code_of([&] { this->store_.publish({"d/a", "b"}); });
  if (!this->store_.capabilities().renames) {
    EXPECT_EQ(code, Code::kUnsupported);
    EXPECT_EQ(this->get("d/a"), "1");
    return;
  }
  EXPECT_EQ(this->get("b"), "1");
  EXPECT_EQ(code_of([&] { this->store_.publish({"d", "d/x"}); }), Code::kIo);
}

TYPED_TEST_P(StoreContract, a_name_changes_under_the_lock_of_its_writer) {
  const auto lock = this->store_.lock("b");
  this->put("b.new", "new");
  this->store_.publish({"b.new", "b", lock.get()});
  EXPECT_EQ(this->get("b"), "new");
}

TYPED_TEST_P(StoreContract, remove_takes_files_and_whole_trees_and_nothing_is_no_error) {
  this->store_.make_directory("d/e");
  this->put("d/e/f", "x");
  this->put("a", "x");
  this->store_.remove("a");
  this->store_.remove("a");
  this->store_.remove("none/at/all");
  this->store_.remove("d");
  EXPECT_TRUE(this->store_.list("").empty());
}

TYPED_TEST_P(StoreContract, remove_empty_takes_a_directory_in_which_nothing_is) {
  this->store_.make_directory("d/e");
  EXPECT_FALSE(this->store_.remove_empty("d"));
  EXPECT_TRUE(this->store_.remove_empty("d/e"));
  EXPECT_TRUE(this->store_.remove_empty("d"));
  EXPECT_TRUE(this->store_.remove_empty("d")) << "it is gone";
  EXPECT_TRUE(this->store_.list("").empty());
}

TYPED_TEST_P(StoreContract, an_open_file_is_told_from_the_one_that_takes_its_name) {
  this->put("a", "x");
  this->put("a.new", "yy");
  const auto open = this->store_.open("a");
  const auto is_another = [&] {
    return is_another_file(open->entry().value(), this->store_.stat("a").value());
  };
  EXPECT_FALSE(is_another());
  this->store_.publish({"a.new", "a"});
  EXPECT_TRUE(is_another());
}

TYPED_TEST_P(StoreContract, a_lock_has_one_holder_until_destroyed_and_leaves_no_file) {
  this->store_.make_directory("d");
  auto first = this->store_.lock("d/a");
  const auto other = this->store_.lock("d/b");
  EXPECT_EQ(code_of([&] { this->store_.lock("d/a"); }), Code::kLocked);
  EXPECT_EQ(error_of([&] { this->store_.lock("d/a"); })->place().file, this->store_.display("d/a"));
  const std::string token = first->token();
  EXPECT_EQ(token.size(), 16U);
  EXPECT_NE(token, other->token());
  EXPECT_EQ(first->warning(), "");
  first.reset();
  EXPECT_NE(this->store_.lock("d/a")->token(), token);
  EXPECT_FALSE(this->store_.stat("d/a"));
  EXPECT_EQ(code_of([&] { this->store_.lock("no/a"); }), Code::kNotFound);
}

TYPED_TEST_P(StoreContract, the_holder_of_a_lock_is_told_to_who_does_not_take_it) {
  this->store_.make_directory("d");
  EXPECT_FALSE(this->store_.lock_holder("d/a"));
  EXPECT_FALSE(this->store_.lock_holder("no/a"));
  auto lock = this->store_.lock("d/a");
  EXPECT_TRUE(this->store_.lock_holder("d/a"));
  EXPECT_FALSE(this->store_.lock_holder("d/b"));
  EXPECT_EQ(code_of([&] { this->store_.lock("d/a"); }), Code::kLocked);
  lock.reset();
  EXPECT_FALSE(this->store_.lock_holder("d/a"));
  EXPECT_EQ(this->store_.list("d").size(), 0U) << "asking leaves nothing";
  lock = this->store_.lock("d/a");
  EXPECT_TRUE(this->store_.lock_holder("d/a"));
}

TYPED_TEST_P(StoreContract, paths_that_leave_the_root_are_refused_by_every_call) {
  Store& store = this->store_;
  const std::string zero("a\0b", 3);
  const std::vector<std::string> escapes = {"..",  "/etc/passwd", "a/../../x", "a/..",
                                            "./a", "a//b",        "a/",        zero};
  for (const std::string& path : escapes) {
    EXPECT_EQ(code_of([&] { store.open(path); }), Code::kPathEscape) << path;
    EXPECT_EQ(code_of([&] { store.create(path); }), Code::kPathEscape) << path;
    EXPECT_EQ(code_of([&] { store.stat(path); }), Code::kPathEscape) << path;
    EXPECT_EQ(code_of([&] { store.list(path); }), Code::kPathEscape) << path;
    EXPECT_EQ(code_of([&] { store.make_directory(path); }), Code::kPathEscape) << path;
    for (const NameChange& change : {NameChange{path, "b"}, NameChange{"b", path}}) {
      EXPECT_EQ(code_of([&] { store.publish(change); }), Code::kPathEscape) << path;
      EXPECT_EQ(code_of([&] { store.replace(change); }), Code::kPathEscape) << path;
      EXPECT_EQ(code_of([&] { store.put_aside(change); }), Code::kPathEscape) << path;
    }
    EXPECT_EQ(code_of([&] { store.remove(path); }), Code::kPathEscape) << path;
    EXPECT_EQ(code_of([&] { store.remove_empty(path); }), Code::kPathEscape) << path;
    EXPECT_EQ(code_of([&] { store.sync_directory(path); }), Code::kPathEscape) << path;
  }
}

TYPED_TEST_P(StoreContract, root_is_neither_removed_nor_renamed) {
  EXPECT_EQ(code_of([&] { this->store_.remove(""); }), Code::kUsage);
  EXPECT_EQ(code_of([&] { this->store_.publish({"", "a"}); }), Code::kUsage);
  EXPECT_EQ(code_of([&] { this->store_.publish({"a", ""}); }), Code::kUsage);
  EXPECT_EQ(code_of([&] { this->store_.create(""); }), Code::kUsage);
}

TYPED_TEST_P(StoreContract, write_atomically_replaces_and_leaves_nothing_beside) {
  write_atomically(this->store_, "tracker", as_bytes("10"));
  write_atomically(this->store_, "tracker", as_bytes("20"));
  EXPECT_EQ(this->get("tracker"), "20");
  EXPECT_THAT(this->names(""), testing::ElementsAre("tracker"));
}

TYPED_TEST_P(StoreContract, open_file_keeps_its_content_when_its_name_goes) {
  this->put("a", "first");
  const auto read = this->store_.open("a");
  this->put("a.new", "second");
  this->store_.publish({"a.new", "a"});
  Bytes out(5);
  read->read_at(0, out);
  EXPECT_EQ(as_text(out), "first");
}

REGISTER_TYPED_TEST_SUITE_P(
    StoreContract, what_was_written_is_read_at_any_offset,
    parts_are_filled_in_order_and_a_short_file_is_torn, bytes_that_were_never_written_are_zero,
    create_truncates_what_was_there, a_short_file_is_torn_and_the_error_has_the_offset_of_its_end,
    stat_tells_files_directories_and_nothing_apart, list_is_sorted_by_bytes_and_not_recursive,
    what_is_not_there_is_not_found_and_named, directory_is_no_file_and_file_is_no_directory,
    make_directory_makes_parents_and_repeats_without_error,
    publish_gives_the_new_name_and_replaces_an_existing_file,
    what_is_put_aside_has_its_name_no_more_and_may_get_it_back,
    a_directory_in_the_way_is_refused_even_if_it_is_empty,
    replace_swaps_two_directories_or_says_unsupported, other_names_are_given_by_stores_that_rename,
    a_name_changes_under_the_lock_of_its_writer,
    remove_takes_files_and_whole_trees_and_nothing_is_no_error,
    remove_empty_takes_a_directory_in_which_nothing_is,
    an_open_file_is_told_from_the_one_that_takes_its_name,
    a_lock_has_one_holder_until_destroyed_and_leaves_no_file,
    the_holder_of_a_lock_is_told_to_who_does_not_take_it,
    paths_that_leave_the_root_are_refused_by_every_call, root_is_neither_removed_nor_renamed,
    write_atomically_replaces_and_leaves_nothing_beside,
    open_file_keeps_its_content_when_its_name_goes);

}  // namespace reprise::contracts
