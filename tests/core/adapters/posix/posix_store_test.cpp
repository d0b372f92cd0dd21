// Tests the store on real directories: the contract of all stores, and features that only a real
// file system has.
#include "core/adapters/posix/posix_store.hpp"
#include "core/ports/passing_store.hpp"
#include "core/ports/whole_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include "core/base/bytes.hpp"
#include "tests/contracts/not_root.hpp"
#include "tests/contracts/store_contract.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::contracts {
namespace {

namespace fs = std::filesystem;

struct PosixStores {
  TemporaryDirectory directory;
  std::unique_ptr<Store> make() { return std::make_unique<PosixStore>(directory.path()); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Posix, StoreContract, PosixStores);

/// A store that has no remove_empty() of its own.
struct PlainStore final : PassingStore {
  using PassingStore::PassingStore;
  bool remove_empty(const std::string& directory) override {
    return Store::remove_empty(directory);  // NOLINT(bugprone-parent-virtual-call): on purpose
  }
};

TEST(Store, remove_empty_works_by_default_and_removes_only_empty_ones) {
  const TemporaryDirectory directory;
  PosixStore inner(directory.path());
  PlainStore store(inner);
  store.make_directory("d/e");
  EXPECT_FALSE(store.remove_empty("d"));
  EXPECT_TRUE(store.remove_empty("d/e"));
  EXPECT_FALSE(store.stat("d/e"));
  EXPECT_TRUE(store.stat("d"));
  EXPECT_TRUE(store.remove_empty("d/e")) << "it is gone";
}

struct PosixStoreTest : testing::Test {
  TemporaryDirectory directory;
  PosixStore store{directory.path()};

  void put(const std::string& path) { store.create(path)->write_at(0, as_bytes("x")); }
};

TEST_F(PosixStoreTest, links_to_files_are_read_through_and_not_written_through) {
  TemporaryDirectory outside;
  PosixStore other(outside.path());
  other.create("secret")->write_at(0, as_bytes("keep"));
  fs::create_symlink(outside.path() + "/secret", directory.path() + "/link");
  EXPECT_EQ(as_text(read_all(store, "link", 100)), "keep");
  EXPECT_EQ(code_of([&] { store.create("link"); }), Code::kPathEscape);
  EXPECT_EQ(as_text(read_all(other, "secret", 100)), "keep");
}

TEST_F(PosixStoreTest, free_space_is_told_of_directories_below_the_root_alone) {
  store.make_directory("d");
  EXPECT_TRUE(store.free_bytes("d"));
  EXPECT_FALSE(store.free_bytes("absent"));
  EXPECT_EQ(code_of([&] { store.free_bytes(".."); }), Code::kPathEscape);
}

TEST_F(PosixStoreTest, links_that_lead_to_no_file_are_told_apart) {
  ASSERT_EQ(::mkfifo((directory.path() + "/pipe").c_str(), 0600), 0);
  for (const auto& [name, target] :
       {std::pair("here", "there"), std::pair("there", "here"), std::pair("lost", "nowhere"),
        std::pair("to_pipe", "pipe"), std::pair("to_device", "/dev/zero"), std::pair("up", ".")}) {
    fs::create_symlink(target, directory.path() + "/" + name);
  }
  const auto words = [this](const char* name) {
    const auto error = error_of([&] { store.open(name); });
    return std::string(error ? error->what() : "opened");
  };
  EXPECT_THAT(words("here"), testing::HasSubstr("IO: open: symbolic links form a loop"));
  EXPECT_THAT(words("lost"),
              testing::HasSubstr("NOT_FOUND: open: a symbolic link whose target does not exist"));
  for (const char* name : {"to_pipe", "to_device", "up"}) {
    EXPECT_THAT(words(name),
                testing::HasSubstr("IO: open: this is a directory, a device or a pipe"));
  }
}

TEST_F(PosixStoreTest, times_of_change_are_told) {
  put("a");
  const auto before = store.stat("a")->modified_ns;
  ASSERT_TRUE(before);
  const fs::path path = directory.path() + "/a";
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::hours(1));
  constexpr std::int64_t kHour = 3'600'000'000'000;
  EXPECT_EQ(*store.list("")[0].modified_ns - *before, kHour);
}

TEST_F(PosixStoreTest, remove_does_not_follow_links) {
  TemporaryDirectory outside;
  PosixStore other(outside.path());
  other.create("keep")->close();
  store.make_directory("d");
  fs::create_directory_symlink(outside.path(), directory.path() + "/d/link");
  store.remove("d");
  EXPECT_FALSE(store.stat("d"));
  EXPECT_TRUE(other.stat("keep"));
}

/// A lock file that the user running the test may read but not write, like a file created by
/// another user under the usual umask.
struct ForeignLock : PosixStoreTest {
  static constexpr fs::perms kReadable =
      fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read;
  static constexpr fs::perms kSearchable =
      fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;

  ForeignLock() {
    fs::permissions(directory.path(), fs::perms::all);
    held_by("process 7 on host elsewhere since 2026-01-01T00:00:00Z");
  }
  void held_by(const std::string& whom) {
    fs::remove(file);
    put(".d.lock");
    store.create(".d.lock")->write_at(0, as_bytes("held by reprise: " + whom + "\n"));
    fs::permissions(file, kReadable);
  }
  std::string refusal() {
    const NotRoot not_root;
    const auto error = error_of([this] { store.lock("d"); });
    return error ? error->what() : "taken";
  }

  std::string file = directory.path() + "/.d.lock";
};

TEST_F(ForeignLock, that_is_held_names_its_holder) {
  const int holder = ::open(file.c_str(), O_RDONLY);
  ASSERT_EQ(::flock(holder, LOCK_EX), 0);
  EXPECT_THAT(refusal(), testing::HasSubstr("LOCKED: process 7 on host elsewhere since 2026"));
  ::close(holder);
  EXPECT_EQ(refusal(), "taken") << "the process that held it is dead";
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(ForeignLock, names_owner_and_remedy_if_it_cannot_be_read_or_removed) {
  const auto tells =
      testing::AllOf(testing::HasSubstr("LOCKED: the lock file " + file + " belongs to user"),
                     testing::HasSubstr("(" + std::to_string(::geteuid()) + ")"),
                     testing::HasSubstr("have that user remove the file"));
  fs::permissions(file, fs::perms::none);
  EXPECT_THAT(refusal(), tells);
  held_by("process 7 on host elsewhere since 2026-01-01T00:00:00Z");
  fs::permissions(directory.path(), kReadable | kSearchable);
  EXPECT_THAT(refusal(), tells);
  fs::permissions(directory.path(), fs::perms::all);
}

TEST_F(ForeignLock, that_is_of_neither_root_nor_this_user_names_its_owner) {
  constexpr uid_t kStranger = 4711;
  const bool root = ::geteuid() == 0;  // only root can give a file away
  if (root) {
    ASSERT_EQ(::chown(file.c_str(), kStranger, kStranger), 0);
  }
  fs::permissions(file, fs::perms::none);
  const uid_t owner = root ? kStranger : ::geteuid();
  EXPECT_THAT(refusal(), testing::HasSubstr("(" + std::to_string(owner) + "), and user "));
}

TEST_F(ForeignLock, that_is_no_lock_file_is_somebody_s_own) {
  fs::permissions(file, fs::perms::all);
  store.create(".d.lock")->write_at(0, as_bytes("my thesis"));
  fs::permissions(file, kReadable);
  EXPECT_THAT(refusal(), testing::HasSubstr("USAGE: a file is in the place of the lock"));
}

TEST_F(PosixStoreTest, root_may_be_a_link) {
  TemporaryDirectory elsewhere;
  put("a");
  fs::create_directory_symlink(directory.path(), elsewhere.path() + "/linked");
  PosixStore linked(elsewhere.path() + "/linked/");
  EXPECT_EQ(linked.list("").size(), 1U);
  EXPECT_EQ(linked.display("a"), elsewhere.path() + "/linked/a");
}

TEST_F(PosixStoreTest, file_in_the_place_of_a_directory_is_named_with_what_to_do) {
  const std::string file = directory.path() + "/afile";
  std::ofstream(file) << "x";
  for (const std::string& root : {file, file + "/x", file + "/x/y"}) {
    const auto error = contracts::error_of([&] { PosixStore(root).make_directory(""); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->message(), "mkdir: this is a file, not a directory; name a directory");
    EXPECT_EQ(error->place().file, file);
  }
}

TEST_F(PosixStoreTest, root_that_is_not_there_is_made_with_its_parents) {
  PosixStore deep(directory.path() + "/x/y");
  EXPECT_EQ(code_of([&] { deep.list(""); }), Code::kNotFound);
  deep.make_directory("");
  EXPECT_TRUE(deep.list("").empty());
  PosixStore other(directory.path() + "/x/z");
  const auto held = other.lock("a");  // locking is a writer's first action
  EXPECT_EQ(other.list("").size(), 1U);
}

TEST_F(PosixStoreTest, dangling_link_is_listed_and_pipe_is_refused_without_waiting) {
  fs::create_symlink("nowhere", directory.path() + "/dangling");
  ASSERT_EQ(::mkfifo((directory.path() + "/pipe").c_str(), 0600), 0);
  ASSERT_EQ(store.list("").size(), 2U);
  EXPECT_EQ(store.list("")[0].name, "dangling");
  EXPECT_EQ(code_of([&] { store.open("pipe"); }), Code::kIo);
  EXPECT_EQ(code_of([&] { store.create("pipe"); }), Code::kIo);
  const int reader = ::open((directory.path() + "/pipe").c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_EQ(code_of([&] { store.create("pipe"); }), Code::kIo) << "somebody reads from it";
  ::close(reader);
  store.remove("dangling");
  EXPECT_FALSE(store.stat("dangling"));
}

TEST_F(PosixStoreTest, errors_say_call_errno_and_whole_path) {
  const auto error = error_of([&] { store.open("no/file"); });
  ASSERT_TRUE(error);
  const std::string line = error->what();
  EXPECT_NE(line.find("open: No such file or directory"), std::string::npos) << line;
  EXPECT_NE(line.find(directory.path() + "/no/file"), std::string::npos) << line;
}

TEST_F(PosixStoreTest, full_device_is_no_space) {
  PosixStore devices("/dev");
  if (!devices.stat("full")) GTEST_SKIP() << "no /dev/full";
  const auto file = devices.create("full");
  EXPECT_EQ(code_of([&] { file->write_at(0, as_bytes("x")); }), Code::kNoSpace);
}

TEST_F(PosixStoreTest, large_offsets_are_sparse_and_exact) {
  const std::uint64_t far = (5ULL << 30U) + 3;
  const auto file = store.create("far");
  file->write_at(far, as_bytes("end"));
  file->sync();
  file->close();
  const auto read = store.open("far");
  EXPECT_EQ(read->size(), far + 3);
  Bytes out(3);
  read->read_at(far, out);
  EXPECT_EQ(as_text(out), "end");
}

}  // namespace
}  // namespace reprise::contracts
