#include "core/format/tensor_frames.hpp"

#include <cstdint>

#include "core/base/hash.hpp"

namespace reprise {

std::shared_ptr<const TensorFrame> TensorFrames::of(DType dtype, const Dims& size,
                                                    const FoldedExtents& folded) {
  auto hash = static_cast<std::uint64_t>(dtype);
  for (const std::int64_t extent : size) hash = mix64(hash + static_cast<std::uint64_t>(extent));
  const std::lock_guard lock(mutex_);
  kept_.resize(kKept);
  auto& frame = kept_[hash % kKept];
  const bool known =
      frame && frame->dtype() == dtype && frame->size() == size && frame->folded() == folded;
  if (!known) frame = std::make_shared<const TensorFrame>(dtype, size, folded);
  return frame;
}

}  // namespace reprise
