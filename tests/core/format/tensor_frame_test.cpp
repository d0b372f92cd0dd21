#include "core/format/tensor_frame.hpp"

#include <gtest/gtest.h>

#include "core/format/tensor_frames.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/crc32.hpp"
#include "tests/core/format/items.hpp"

namespace reprise {
namespace {

ByteSpan head_of(ByteSpan item, const TensorFrame& frame) { return item.first(frame.head_bytes()); }
ByteSpan tail_of(ByteSpan item, const TensorFrame& frame) {
  return item.subspan(frame.head_bytes() + frame.data_bytes());
}

std::optional<TensorItem> matched(ByteSpan item, const TensorFrame& frame) {
  if (item.size() != frame.length()) return std::nullopt;
  return frame.match(head_of(item, frame), tail_of(item, frame));
}

/// Returns the item as read by the reader that parses it; nothing if that reader refuses the item.
std::optional<TensorItem> parsed(ByteSpan item) try {
  SpanSource source(item);
  return read_tensor_item(source);
} catch (const Error&) {
  return std::nullopt;
}

bool same(const TensorItem& a, const TensorItem& b) {
  return a.dtype == b.dtype && a.size == b.size && a.strides == b.strides &&
         a.storage_offset == b.storage_offset && a.data_offset == b.data_offset &&
         a.data_bytes == b.data_bytes && a.crc == b.crc && a.byteswap == b.byteswap &&
         a.flips.any() == b.flips.any() && a.folded == b.folded && a.overlaps == b.overlaps;
}

Bytes item_of(DType dtype, const Dims& size, const FoldedExtents& folded = {}) {
  const TensorItemLayout layout(dtype, size, folded);
  Bytes elements(layout.data_bytes());
  for (std::size_t n = 0; n < elements.size(); ++n) elements[n] = static_cast<std::byte>(n * 7);
  Bytes item = layout.head();
  append(item, elements);
  append(item, layout.tail(crc32_of(elements)));
  return item;
}

TEST(TensorFrame, every_item_that_is_written_here_is_framed_so) {
  for (const DType dtype : all_dtypes()) {
    for (const Dims& size :
         {Dims{}, Dims{1}, Dims{7}, Dims{300, 5}, Dims{1, 2, 3, 4, 5, 6, 7, 8}}) {
      const Bytes item = item_of(dtype, size);
      const TensorFrame frame(dtype, size);
      const auto found = matched(item, frame);
      ASSERT_TRUE(found) << dtype << size;
      EXPECT_TRUE(same(*found, *parsed(item))) << dtype << size;
      EXPECT_TRUE(frame.id_is_whole(tail_of(item, frame)));
      SpanSource source(item);
      EXPECT_EQ(Archive(source).records().size(), TensorFrame::kRecords);
    }
  }
}

TEST(TensorFrame, more_than_eight_dimensions_are_read_as_by_parsing) {
  const Dims size{1, 2, 1, 2, 1, 2, 1, 6};
  const FoldedExtents folded{2, 3};
  const Bytes item = item_of(DType::kFloat32, size, folded);
  const auto found = matched(item, TensorFrame(DType::kFloat32, size, folded));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->folded, folded);
  EXPECT_TRUE(same(*found, *parsed(item)));
  EXPECT_FALSE(matched(item, TensorFrame(DType::kFloat32, size)));
}

TEST(TensorFrame, items_of_torch_2_9_and_later_match_and_agree_with_parsing) {
  std::size_t framed = 0;
  std::size_t others = 0;
  for (const auto& path : test::payload_files()) {
    const Bytes payload = test::test_file(path);
    for (const ByteSpan item : test::items_in(payload)) {
      const auto truth = parsed(item);
      if (!truth || truth->element_bytes() == 0) continue;
      const auto found = matched(item, TensorFrame(truth->dtype, truth->size));
      EXPECT_TRUE(!found || same(*found, *truth)) << path;
      EXPECT_FALSE(found && path.find("torch_2.4.1") != std::string::npos) << path;
      ++(found ? framed : others);
    }
  }
  EXPECT_GT(framed, 400U);
  EXPECT_LT(others, framed / 4) << "strided, flagged and older items";
}

/// Changes each byte before or after the elements to all of its 255 other values.
TEST(TensorFrame, a_spoiled_item_that_still_matches_means_what_parsing_says) {
  const TensorFrame frame(DType::kBFloat16, {3, 5});
  Bytes item = item_of(DType::kBFloat16, {3, 5});
  std::size_t unseen = 0;
  for (std::size_t at = 0; at < item.size(); ++at) {
    if (at >= frame.head_bytes() && at < frame.head_bytes() + frame.data_bytes()) continue;
    const std::byte right = item[at];
    for (int bits = 1; bits < 256; ++bits) {
      item[at] = right ^ static_cast<std::byte>(bits);
      const auto found = matched(item, frame);
      if (!found) continue;
      const auto truth = parsed(item);
      ASSERT_TRUE(truth) << at;
      ASSERT_TRUE(same(*found, *truth)) << at;
      ++unseen;
    }
    item[at] = right;
  }
  // A changed item matches the frame only if the changed byte is in one of the four checksums of 4
  // bytes each, or in the id of 40 bytes, which stays text: torch fails on any other.
  EXPECT_EQ(unseen, 255U * 4 * 4 + 127U * 40);
}

TEST(TensorFrame, a_changed_id_is_not_whole) {
  const TensorFrame frame(DType::kInt8, {4});
  Bytes item = item_of(DType::kInt8, {4});
  std::size_t broken = 0;
  for (std::size_t at = frame.head_bytes() + frame.data_bytes(); at < item.size(); ++at) {
    item[at] ^= std::byte{1};
    const ByteSpan tail = tail_of(item, frame);
    if (matched(item, frame) && !frame.id_is_whole(tail)) ++broken;
    item[at] ^= std::byte{1};
  }
  EXPECT_EQ(broken, 40U + 4U);
}

/// True if the frame is the one that such items have.
bool is_frame_of(const TensorFrame& frame, DType dtype, const Dims& size,
                 const FoldedExtents& folded) {
  const TensorItemLayout right(dtype, size, folded);
  return frame.dtype() == dtype && frame.size() == size && frame.folded() == folded &&
         frame.layout().head() == right.head() &&
         frame.layout().blank_tail() == right.blank_tail() && frame.length() == right.length();
}

TEST(TensorFrames, a_frame_that_is_kept_is_that_of_its_form) {
  TensorFrames frames;
  const Dims folded_size = Dims::filled(kMaxNdim, 6);
  for (int round = 0; round < 2; ++round) {
    // So many that forms of the same size, too, meet in one place.
    for (std::int64_t n = 0; n < 100; ++n) {
      for (const DType dtype : all_dtypes()) {
        ASSERT_TRUE(is_frame_of(*frames.of(dtype, {n, 3}), dtype, {n, 3}, {})) << dtype << n;
      }
    }
    for (const FoldedExtents& folded : {FoldedExtents{}, FoldedExtents{2, 3}, FoldedExtents{6}}) {
      for (const DType dtype : {DType::kInt64, DType::kFloat64}) {
        const auto frame = frames.of(dtype, folded_size, folded);
        ASSERT_TRUE(is_frame_of(*frame, dtype, folded_size, folded)) << dtype << folded.size();
        EXPECT_EQ(frames.of(dtype, folded_size, folded), frame) << "it was made again";
      }
    }
  }
}

}  // namespace
}  // namespace reprise
