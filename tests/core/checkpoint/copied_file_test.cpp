// Tests the copy of an item whose bytes are patched on the way.
#include "core/checkpoint/copied_file.hpp"

#include <gtest/gtest.h>

#include "core/adapters/posix/posix_store.hpp"
#include "core/ports/no_progress.hpp"
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

}  // namespace
}  // namespace reprise
