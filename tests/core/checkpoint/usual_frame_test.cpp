// Tests that an item in its usual frame is told of as one that is parsed, and every other is left
// to parsing.

#include "core/checkpoint/usual_frame.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "core/adapters/posix/posix_store.hpp"
#include "core/format/zip/archive.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

/// A checkpoint of one tensor, whose item is one of this writer's.
struct FramedItem : testing::Test {
  std::optional<TensorItem> read(ChecksumTally* tally) {
    checkpoint.emplace(Checkpoint::open(store, "ckpt"));
    return framed_item(*checkpoint, tensor(), tensor().chunks[0], tally);
  }
  const StoredTensor& tensor() const { return checkpoint->catalog().tensors[0]; }
  ByteRange range() const { return tensor().chunks[0].range; }
  std::unique_ptr<ItemSource> slice() {
    return checkpoint->slice("w", tensor().chunks[0].file, range());
  }
  void flip(std::uint64_t at) const {
    std::fstream file(written.path() + "/ckpt/__0_0.distcp",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 0x10));
  }

  test::WrittenCheckpoint written;
  PosixStore& store = written.tensor("w", DType::kFloat32, {3, 4}, Bytes(48, std::byte{7})).store();
  std::optional<Checkpoint> checkpoint;
};

TEST_F(FramedItem, counts_all_records_but_the_elements) {
  ChecksumTally tally;
  const auto item = read(&tally);
  ASSERT_TRUE(item);
  ChecksumTally parsed;
  parsed.add(*slice(), "w");
  EXPECT_EQ(parsed.records(), TensorFrame::kRecords);
  EXPECT_EQ(tally.records(), parsed.records() - 1);
  EXPECT_EQ(tally.counts().begin()->first, parsed.counts().begin()->first);
  EXPECT_EQ(tally.mismatches(), 0U);
  EXPECT_TRUE(read(nullptr));
}

TEST_F(FramedItem, with_a_flipped_byte_is_left_to_parsing_or_found_by_it) {
  ASSERT_TRUE(read(nullptr));
  std::uint64_t framed = 0;
  for (std::uint64_t at = 0; at < range().size; ++at) {
    flip(range().offset + at);
    ChecksumTally tally;
    const auto item = read(&tally);
    if (item) {
      const TensorItem parsed = checkpoint->tensor_item(tensor(), tensor().chunks[0]);
      EXPECT_EQ(item->crc, parsed.crc) << at;
      EXPECT_EQ(item->data_offset, parsed.data_offset) << at;
      EXPECT_EQ(tally.mismatches(), 0U) << at;
      ChecksumTally all;
      all.add(*slice(), "w");
      const Bytes elements = read_range(*slice(), {item->data_offset, item->data_bytes});
      EXPECT_EQ(all.mismatches(), crc32_of(elements) == item->crc ? 0U : 1U) << at;
      ++framed;
    } else {
      EXPECT_EQ(tally.records(), 0U) << at;
    }
    flip(range().offset + at);
  }
  EXPECT_EQ(framed, 48U + 4U + 8U)
      << "elements, their checksum, and copies of checksums behind contents, which nobody reads";
}

TEST_F(FramedItem, that_the_file_cuts_short_is_torn) {
  ASSERT_TRUE(read(nullptr));
  std::filesystem::resize_file(written.path() + "/ckpt/__0_0.distcp",
                               range().offset + range().size - 1);
  EXPECT_EQ(contracts::code_of([&] { read(nullptr); }), Code::kTornFile);
}

}  // namespace
}  // namespace reprise
