// System calls that do less than they were asked for, and names that change between two calls. The
// functions below stand in for those of the C library in this test program.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>
#include <vector>

#include "core/adapters/posix/posix_store.hpp"
#include "core/base/random.hpp"
#include "core/ports/whole_file.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace {

/// Most bytes that a read or write transfers; 0 for no limit.
std::size_t most = 0;
/// Number of calls of each kind that were cut.
int cut_reads = 0;
int cut_writes = 0;
/// Called before a file is locked.
std::function<void()> before_lock;

template <class Call>
Call* real(const char* name) {
  return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}

std::size_t cut(std::size_t bytes, int& count) {
  if (most == 0 || bytes <= most) return bytes;
  ++count;
  return most;
}

}  // namespace

extern "C" {

ssize_t pread(int fd, void* out, size_t bytes, off_t offset) {
  static auto* const call = real<ssize_t(int, void*, size_t, off_t)>("pread");
  return call(fd, out, cut(bytes, cut_reads), offset);
}

ssize_t pwrite(int fd, const void* from, size_t bytes, off_t offset) {
  static auto* const call = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return call(fd, from, cut(bytes, cut_writes), offset);
}

ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) {
  static auto* const call = real<ssize_t(int, const iovec*, int, off_t)>("preadv");
  if (most == 0) return call(fd, parts, count, offset);
  std::vector<iovec> first;
  std::size_t left = most;
  for (int i = 0; i < count && left > 0; ++i) {
    first.push_back({parts[i].iov_base, std::min(parts[i].iov_len, left)});
    left -= first.back().iov_len;
  }
  ++cut_reads;
  return call(fd, first.data(), static_cast<int>(first.size()), offset);
}

int flock(int fd, int operation) noexcept {
  static auto* const call = real<int(int, int)>("flock");
  if (before_lock) std::exchange(before_lock, nullptr)();
  return call(fd, operation);
}

}  // extern "C"

namespace reprise {
namespace {

namespace fs = std::filesystem;

struct ShortCalls : testing::Test {
  contracts::TemporaryDirectory directory;
  PosixStore store{directory.path()};

  ~ShortCalls() override {
    most = 0;
    before_lock = nullptr;
  }

  static Bytes content(std::size_t bytes) {
    Bytes all(bytes);
    const Stream random(5);
    for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(random.at(i));
    return all;
  }
};

constexpr std::size_t kBytes = 5003;

TEST_F(ShortCalls, write_all_and_in_place) {
  const Bytes all = content(kBytes);
  for (const std::size_t bytes : {1U, 7U, 1000U, 4999U}) {
    SCOPED_TRACE(bytes);
    most = bytes;
    cut_writes = 0;
    const auto file = store.create("f");
    file->write_at(3, ByteSpan(all).subspan(3));
    file->write_at(0, ByteSpan(all).first(3));
    file->close();
    EXPECT_GT(cut_writes, 0);
    most = 0;
    EXPECT_EQ(read_all(store, "f", kBytes), all);
  }
}

TEST_F(ShortCalls, read_all_from_the_right_place) {
  const Bytes all = content(kBytes);
  write_durably(store, "f", all);
  for (const std::size_t bytes : {1U, 7U, 1000U, 4999U}) {
    SCOPED_TRACE(bytes);
    most = bytes;
    cut_reads = 0;
    Bytes read(kBytes - 3);
    store.open("f")->read_at(3, read);
    EXPECT_GT(cut_reads, 0);
    EXPECT_TRUE(std::equal(read.begin(), read.end(), all.begin() + 3));
  }
}

TEST_F(ShortCalls, read_parts_from_the_right_place_wherever_a_call_ends) {
  const Bytes all = content(kBytes);
  write_durably(store, "f", all);
  const std::array<std::size_t, 20> sizes = {1,  0, 13, 200, 7, 0,   0, 64, 500, 31,
                                             90, 1, 1,  300, 0, 128, 5, 77, 9,   256};
  for (std::size_t bytes = 1; bytes < 700; bytes += bytes < 30 ? 1 : 37) {
    SCOPED_TRACE(bytes);
    most = bytes;
    cut_reads = 0;
    std::vector<Bytes> parts;
    std::vector<MutableByteSpan> spans;
    for (const std::size_t size : sizes) parts.emplace_back(size);
    for (Bytes& part : parts) spans.emplace_back(part);
    store.open("f")->read_parts(11, spans);
    EXPECT_GT(cut_reads, 0);
    std::ptrdiff_t at = 11;
    for (const Bytes& part : parts) {
      EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + at)) << "part at " << at;
      at += static_cast<std::ptrdiff_t>(part.size());
    }
  }
}

TEST_F(ShortCalls, read_parts_beyond_the_end_are_torn_at_the_end) {
  write_durably(store, "f", content(100));
  most = 9;
  Bytes a(60);
  Bytes b(60);
  const std::array<MutableByteSpan, 2> spans = {MutableByteSpan(a), MutableByteSpan(b)};
  EXPECT_EQ(contracts::code_of([&] { store.open("f")->read_parts(0, spans); }), Code::kTornFile);
}

TEST_F(ShortCalls, lock_file_that_is_removed_before_it_is_locked_is_made_again) {
  const std::string file = directory.path() + "/.run.lock";
  before_lock = [&] { fs::remove(file); };
  const auto lock = store.lock("run");
  EXPECT_TRUE(fs::exists(file)) << "another writer would make it and lock it, too";
  EXPECT_EQ(contracts::code_of([&] { store.lock("run"); }), Code::kLocked);
}

TEST_F(ShortCalls, a_lock_file_that_another_writer_made_again_is_respected) {
  const std::string file = directory.path() + "/.run.lock";
  before_lock = [&] {
    fs::remove(file);
    std::ofstream(file) << "held by reprise: process 1 on host h since now\n";
    // The other writer's lock, on an open file of its own.
    const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  };
  EXPECT_EQ(contracts::code_of([&] { store.lock("run"); }), Code::kLocked);
}

TEST_F(ShortCalls, a_lock_file_removed_while_it_is_being_locked_is_made_again) {
  const std::string file = directory.path() + "/.run.lock";
  std::ofstream(file) << "held by reprise: process 1 on host h since now\n";
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  before_lock = [&] {
    fs::remove(file);  // the holder has yet to close it
    before_lock = [&] { ::close(fd); };
  };
  const auto lock = store.lock("run");
  EXPECT_TRUE(fs::exists(file));
  EXPECT_EQ(contracts::code_of([&] { store.lock("run"); }), Code::kLocked);
}

}  // namespace
}  // namespace reprise
