#include "core/format/tensor_frames.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

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
