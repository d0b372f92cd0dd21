#include "core/format/tensor_frames.hpp"

#include <cstdint>

#include "core/base/hash.hpp"

namespace reprise {

std::shared_ptr<const TensorFrame> TensorFrames::of(DType dtype, const Dims& size,
                                                    const FoldedExtents& folded) {
  auto hash = static_cast<std::uint64_t>(dtype);
  for (const std::int64_t extent : size) hash = mix64(hash + static_cast<std::uint64_t>(extent));
  const std::size_t place = hash % kKept;
  {
    const std::lock_guard lock(mutex_);
    kept_.resize(kKept);
    const auto& kept = kept_[place];
    if (kept && kept->dtype() == dtype && kept->size() == size && kept->folded() == folded) {
      return kept;
    }
  }
  auto frame = std::make_shared<const TensorFrame>(dtype, size, folded);
  const std::lock_guard lock(mutex_);
  kept_[place] = frame;
  return frame;
}

}  // namespace reprise
