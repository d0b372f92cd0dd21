#include "core/geometry/folded_shape.hpp"

namespace reprise {
namespace {

std::vector<std::int64_t> with_last(const Dims& dims, std::span<const std::int64_t> last) {
  std::vector<std::int64_t> all(dims.begin(), dims.end() - 1);
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

}  // namespace

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
