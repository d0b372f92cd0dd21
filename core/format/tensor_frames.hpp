#pragma once
// Keeps the frames of tensor items, because shapes repeat from layer to layer and from rank to
// rank.

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "core/format/tensor_frame.hpp"

namespace reprise {

/// Keeps at most kKept frames, of about 3 KiB each, and 8 KiB with 64 dimensions. Thread-safe. It
/// only saves work: what it returns depends on the arguments alone.
class TensorFrames {
 public:
  /// Returns TensorFrame(dtype, size, folded).
  std::shared_ptr<const TensorFrame> of(DType dtype, const Dims& size,
                                        const FoldedExtents& folded = {});

  static constexpr std::size_t kKept = 256;

 private:
  std::mutex mutex_;
  /// Empty before the first use. Each form has one place, which the latest with that place takes.
  std::vector<std::shared_ptr<const TensorFrame>> kept_;
};

}  // namespace reprise
