// The store over real directories: the contract, and what only a real file system has.
#include "core/adapters/posix/posix_store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

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

struct PosixStoreTest : testing::Test {
  TemporaryDirectory directory;
  PosixStore store{directory.path()};

  void put(const std::string& path) { store.create(path)->write_at(0, as_bytes("x")); }
};

TEST_F(PosixStoreTest, links_to_files_are_not_opened_and_not_written_through) {
  TemporaryDirectory outside;
  PosixStore other(outside.path());
  other.create("secret")->write_at(0, as_bytes("keep"));
  fs::create_symlink(outside.path() + "/secret", directory.path() + "/link");
  EXPECT_EQ(code_of([&] { store.open("link"); }), Code::kPathEscape);
  EXPECT_EQ(code_of([&] { store.create("link"); }), Code::kPathEscape);
  EXPECT_EQ(as_text(read_all(other, "secret", 100)), "keep");
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

TEST_F(PosixStoreTest, root_may_be_a_link) {
  TemporaryDirectory elsewhere;
  put("a");
  fs::create_directory_symlink(directory.path(), elsewhere.path() + "/linked");
  PosixStore linked(elsewhere.path() + "/linked/");
  EXPECT_EQ(linked.list("").size(), 1U);
  EXPECT_EQ(linked.display("a"), elsewhere.path() + "/linked/a");
}

TEST_F(PosixStoreTest, root_that_is_not_there_is_made_with_its_parents) {
  PosixStore deep(directory.path() + "/x/y");
  EXPECT_EQ(code_of([&] { deep.list(""); }), Code::kNotFound);
  EXPECT_FALSE(deep.capabilities().exchange);
  deep.make_directory("");
  EXPECT_TRUE(deep.list("").empty());
  EXPECT_EQ(deep.capabilities().exchange, store.capabilities().exchange);
}

TEST_F(PosixStoreTest, dangling_link_is_listed_and_pipe_is_refused_without_waiting) {
  fs::create_symlink("nowhere", directory.path() + "/dangling");
  ASSERT_EQ(::mkfifo((directory.path() + "/pipe").c_str(), 0600), 0);
  ASSERT_EQ(store.list("").size(), 2U);
  EXPECT_EQ(store.list("")[0].name, "dangling");
  EXPECT_EQ(code_of([&] { store.open("pipe"); }), Code::kIo);
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
