// Tests the copy of a working directory that a life gets, and where the hook is found.
#include "driver/watch/work_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/arguments/shell_words.hpp"
#include "driver/watch/hook_place.hpp"
#include "driver/yaml/text_file.hpp"
#include "reprise/error.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class WorkTree : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text = "text") const {
    fs::create_directories((user() / name).parent_path());
    std::ofstream(user() / name) << text;
  }
  fs::path user() const { return root_ / "user"; }
  fs::path target() const { return root_ / "work"; }
  fs::path root() const { return root_; }
  WorkSource source() const { return {.directory = user()}; }

 private:
  contracts::TemporaryDirectory directory_;
  fs::path root_ = fs::canonical(directory_.path());
};

TEST_F(WorkTree, a_write_into_the_copy_leaves_the_user_s_file_as_it_was) {
  put("train.py");
  put("ckpt/old.pt", "old");
  put("ckpt/__pycache__/x");
  copy_work_tree(source(), target());
  std::ofstream(target() / "ckpt/old.pt") << "new";
  EXPECT_EQ(text_of(user() / "ckpt/old.pt"), "old");
  EXPECT_EQ(text_of(target() / "train.py"), "text");
  EXPECT_FALSE(fs::exists(target() / "ckpt/__pycache__"));
}

TEST_F(WorkTree, links_what_is_only_read_and_leaves_out_what_is_named) {
  put("data/big");
  put("ckpt/old.pt");
  put("env/pyvenv.cfg");
  put(".git/config");
  WorkSource own = source();
  own.links = {"data/"};
  own.without = {"ckpt", "absent"};
  copy_work_tree(own, target());
  for (const char* linked : {"data", "env", ".git"}) {
    EXPECT_EQ(fs::read_symlink(target() / linked), user() / linked);
  }
  EXPECT_FALSE(fs::exists(target() / "ckpt"));
}

TEST_F(WorkTree, a_link_of_the_user_s_stays_a_link_to_the_same_place) {
  put("a/file");
  fs::create_symlink("a/file", user() / "inside");
  fs::create_symlink("../elsewhere", user() / "outside");
  copy_work_tree(source(), target());
  EXPECT_EQ(fs::read_symlink(target() / "inside"), "a/file");
  EXPECT_EQ(fs::read_symlink(target() / "outside"), root() / "elsewhere");
}

TEST_F(WorkTree, refuses_too_much_by_its_largest_entries_and_copies_nothing) {
  put("small", "1");
  put("data/big", std::string(100, 'x'));
  WorkSource own = source();
  own.bytes_max = 50;
  EXPECT_THAT([&] { copy_work_tree(own, target()); },
              ThrowsMessage<Error>(HasSubstr("the largest are data (100 B, 1 file), small (1 B")));
  EXPECT_FALSE(fs::exists(target()));
  own.links = {"data"};
  copy_work_tree(own, target());
  own.links = {"../user"};
  EXPECT_THROW(copy_work_tree(own, root() / "other"), Error);
}

TEST_F(WorkTree, words_that_name_the_user_s_directory_name_the_copy) {
  put("train.py");
  put("data/x");
  WorkSource own = source();
  own.links = {"data"};
  const std::string there = user().string();
  const std::string here = target().string();
  EXPECT_THAT(
      words_in(own, target(),
               {there + "/train.py", "--out=" + there + "/ckpt", "--data", there + "/data/x",
                "--at", "{work}/a", "../user/train.py", "../absent", "/usr/bin"}),
      ElementsAre(here + "/train.py", "--out=" + here + "/ckpt", "--data", there + "/data/x",
                  "--at", here + "/a", here + "/train.py", "../absent", "/usr/bin"));
  own.in_place = true;
  EXPECT_THAT(words_in(own, target(), {there + "/train.py", "{work}/a"}),
              ElementsAre(there + "/train.py", here + "/a"));
}

TEST_F(WorkTree, finds_the_hook_in_a_source_tree_a_tarball_and_a_venv) {
  for (const auto& [program, package] :
       {std::pair{"tree/build/release/reprise", "tree/python/reprise"},
        {"tar/bin/reprise", "tar/python/reprise"},
        {"env/bin/reprise", "env/lib/python3.11/site-packages/reprise"}}) {
    EXPECT_THAT([&] { find_hook((user() / program).string(), ""); },
                ThrowsMessage<Error>(HasSubstr("the wheel reprise-ckpt")));
    put(std::string(package) + "/watch/site/sitecustomize.py");
    EXPECT_EQ(find_hook((user() / program).string(), ""), user() / package / "watch/site");
    EXPECT_EQ(find_hook("", (user() / package).string()), user() / package / "watch/site");
  }
}

TEST(ShellWords, are_split_as_by_a_shell) {
  using cli::shell_words;
  EXPECT_THAT(shell_words(" a  'b c' \"d \\\" e\"f '' g\\ h"),
              ElementsAre("a", "b c", "d \" ef", "", "g h"));
  EXPECT_THAT(shell_words(""), ElementsAre());
  EXPECT_THROW(shell_words("'a"), Error);
}

}  // namespace
}  // namespace reprise::driver
