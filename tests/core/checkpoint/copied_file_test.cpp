// Tests the copy of an item whose bytes are patched on the way.
#include "core/checkpoint/copied_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/adapters/posix/posix_store.hpp"
#include "core/ports/no_progress.hpp"
#include "core/ports/passing_store.hpp"
#include "core/ports/whole_file.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise {
namespace {

constexpr std::size_t kStep = std::size_t{1} << 20U;  // the copy reads this many bytes at a time

TEST(CopiedFile, patches_come_wherever_they_fall_and_nothing_else_changes) {
  const contracts::TemporaryDirectory directory;
  PosixStore store(directory.path());
  NoProgress none;
  ByteProgress progress(none);
  Bytes content;
  for (std::size_t i = 0; i < 3 * kStep + 9; ++i) content.push_back(static_cast<std::byte>(i * 7));
  Bytes expected = content;
  std::vector<Archive::Patch> patches;
  for (const std::size_t at :
       {std::size_t{0}, kStep - 2, 2 * kStep - 4, 2 * kStep + 77, 3 * kStep + 5}) {
    patches.push_back({at, 0xa1b2c3d4});
    Bytes value;
    append_le(value, patches.back().value);
    std::copy(value.begin(), value.end(), expected.begin() + static_cast<std::ptrdiff_t>(at));
  }
  SpanSource source(content);
  CopiedFile file(store, "copy", progress);
  const ByteRange range = file.append(source, patches);
  EXPECT_EQ(range.size, content.size());
  EXPECT_EQ(file.finish().bytes, content.size());
  EXPECT_TRUE(read_all(store, "copy", 1U << 30U) == expected);
}

/// A store whose files are there only once they were closed, as in an object store.
class PutsWhenClosed final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  std::unique_ptr<WriteFile> create(const std::string& path) override {
    return std::make_unique<File>(inner(), path);
  }

 private:
  class File final : public WriteFile {
   public:
    File(Store& store, std::string path) : store_(store), path_(std::move(path)) {}
    void write_at(std::uint64_t offset, ByteSpan bytes) override {
      content_.resize(std::max<std::size_t>(content_.size(), offset + bytes.size()));
      std::copy(bytes.begin(), bytes.end(), content_.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    void sync() override {}
    void close() override { write_durably(store_, path_, content_); }

   private:
    Store& store_;
    std::string path_;
    Bytes content_;
  };
};

TEST(CopiedFile, is_closed_before_it_is_read_back) {
  const contracts::TemporaryDirectory directory;
  PosixStore disk(directory.path());
  PutsWhenClosed store(disk);
  NoProgress none;
  ByteProgress progress(none);
  const Bytes content = to_bytes("some bytes");
  SpanSource source(content);
  CopiedFile file(store, "copy", progress);
  file.append(source, {});
  EXPECT_EQ(file.finish().bytes, content.size());
  EXPECT_EQ(read_all(disk, "copy", 1U << 20U), content);
}

}  // namespace
}  // namespace reprise
