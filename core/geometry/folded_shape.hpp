#pragma once
// Tensors of more than kMaxNdim dimensions. No plan cuts their trailing dimensions, so the engine
// folds these into one, and unfolds them where torch reads the shape:
//
//   extents 2, 1, 1, 1, 1, 1, 1, 3, 4, 5   shape [2, 1, 1, 1, 1, 1, 1, 60], folded 3, 4, 5

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reprise/tensor.hpp"

namespace reprise {

/// Largest number of dimensions that torch's own functions take.
inline constexpr std::size_t kTorchNdimMax = 64;

/// True if `folded` is empty, or if the last of kMaxNdim dimensions can stand for it: it has as
/// many elements, nothing overflows, and torch takes that many dimensions.
bool can_stand_for(const Dims& shape, const FoldedExtents& folded);

/// Returns the distance in elements between neighbours along the one dimension that stands for
/// these; 1 if there are no neighbours. Returns nothing if they do not lie together in memory.
std::optional<std::int64_t> folded_stride(std::span<const std::int64_t> extents,
                                          std::span<const std::int64_t> strides);

/// Returns all extents of a tensor, or of a box that is not cut along its last dimension.
std::vector<std::int64_t> unfolded(const Dims& extents, const FoldedExtents& folded);
/// Returns the offset in all dimensions of such a box.
std::vector<std::int64_t> unfolded_offset(const Dims& offset, const FoldedExtents& folded);

/// Returns text such as "[4, 6]".
std::string shape_text(std::span<const std::int64_t> extents);

}  // namespace reprise
