#include "core/geometry/folded_shape.hpp"

namespace reprise {
namespace {

std::vector<std::int64_t> with_last(const Dims& dims, std::span<const std::int64_t> last) {
  std::vector<std::int64_t> all(dims.begin(), dims.end() - 1);
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

}  // namespace

bool can_stand_for(const Dims& shape, const FoldedExtents& folded) {
  if (folded.empty()) return true;
  if (shape.size() != kMaxNdim || folded.size() < 2) return false;
  if (kMaxNdim - 1 + folded.size() > kTorchNdimMax) return false;
  FoldedExtents counted = folded;  // a 0 would hide that the strides overflow
  for (std::int64_t& extent : counted) extent = extent == 0 ? 1 : extent;
  return checked_volume(counted) && checked_volume(folded) == shape[kMaxNdim - 1];
}

std::optional<std::int64_t> folded_stride(std::span<const std::int64_t> extents,
                                          std::span<const std::int64_t> strides) {
  std::optional<std::int64_t> stride;
  std::int64_t next = 0;  // what the stride of the next dimension outwards must be
  for (std::size_t d = extents.size(); d-- > 0;) {
    if (extents[d] == 1) continue;
    if (!stride) stride = next = strides[d];
    if (strides[d] != next || __builtin_mul_overflow(next, extents[d], &next)) return std::nullopt;
  }
  return stride.value_or(1);
}

std::vector<std::int64_t> unfolded(const Dims& extents, const FoldedExtents& folded) {
  if (folded.empty()) return {extents.begin(), extents.end()};
  return with_last(extents, folded);
}

std::vector<std::int64_t> unfolded_offset(const Dims& offset, const FoldedExtents& folded) {
  if (folded.empty()) return {offset.begin(), offset.end()};
  return with_last(offset, FoldedExtents(folded.size(), 0));
}

std::string shape_text(std::span<const std::int64_t> extents) {
  std::string text = "[";
  for (const std::int64_t extent : extents) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + "]";
}

}  // namespace reprise
