#pragma once
// Cuts a tensor into boxes of bounded size, in row-major order, so that the first difference found
// is the one with the lowest global index.

#include <cstdint>
#include <functional>

#include "core/geometry/box.hpp"

namespace reprise {

/// Calls `visit` for boxes that tile a tensor of this shape; each is contiguous in row-major order
/// and has at most `elements_max` (> 0) elements. Never calls it for a tensor without elements.
///
///   shape [3, 4], at most 4 elements: [0:1, 0:4] [1:2, 0:4] [2:3, 0:4]
///   shape [3, 4], at most 3 elements: [0:1, 0:3] [0:1, 3:4] [1:2, 0:3] ...
void for_each_block(const Dims& shape, std::int64_t elements_max,
                    const std::function<void(const Box&)>& visit);

}  // namespace reprise
