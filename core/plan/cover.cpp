#include "core/plan/cover.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/geometry/tiling.hpp"

namespace reprise {
namespace {

/// True if the box lies within the shape. Accepts arbitrary numbers; the computation cannot
/// overflow.
bool lies_within(const Dims& shape, const Box& box) {
  if (box.offset.size() != shape.size() || box.extent.size() != shape.size()) return false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (box.offset[d] < 0 || box.extent[d] < 0) return false;
    if (box.offset[d] > shape[d] || box.extent[d] > shape[d] - box.offset[d]) return false;
  }
  return true;
}

/// Prints a box as its offset and its extent. Does not print the end, because its computation may
/// overflow.
std::string offset_and_extent(const Box& box) {
  return "at " + to_string(box.offset) + " of extent " + to_string(box.extent);
}

}  // namespace

std::optional<CoverDefect> prove_cover(const Dims& shape, std::span<const Box> boxes) {
  if (!checked_volume(shape)) {
    return CoverDefect{Code::kExtentMismatch, Box::whole(shape),
                       "shape " + to_string(shape) +
                           " has a negative extent or more elements than a 64-bit count holds"};
  }
  bool some_empty = false;
  for (const Box& box : boxes) {
    if (!lies_within(shape, box)) {
      return CoverDefect{
          Code::kExtentMismatch, box,
          "box " + offset_and_extent(box) + " leaves the tensor of shape " + to_string(shape)};
    }
    some_empty = some_empty || box.empty();
  }
  std::vector<Box> kept;
  if (some_empty) {
    std::copy_if(boxes.begin(), boxes.end(), std::back_inserter(kept),
                 [](const Box& box) { return !box.empty(); });
  }
  const std::span<const Box> full = some_empty ? kept : boxes;
  const auto fault = tiling_fault(Box::whole(shape), full);
  if (!fault) return std::nullopt;
  if (fault->overlap) {
    const Box& a = full[fault->overlap->first];
    const Box& b = full[fault->overlap->second];
    const Box common = *intersect(a, b);
    return CoverDefect{
        Code::kChunkOverlap, common,
        "boxes " + to_string(a) + " and " + to_string(b) + " overlap in " + to_string(common)};
  }
  return CoverDefect{Code::kCoverageGap, *fault->gap,
                     "elements " + to_string(*fault->gap) + " of shape " + to_string(shape) +
                         " are in none of the " + std::to_string(full.size()) + " boxes"};
}

}  // namespace reprise
