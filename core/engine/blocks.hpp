#pragma once
// A tensor cut into boxes of bounded size, in row-major order, so that the first difference that is
// met has the lowest global index.

#include <cstdint>
#include <functional>

#include "core/geometry/box.hpp"

namespace reprise {

/// Calls `visit` for boxes that tile a tensor of this shape, each of at most `elements_max` (> 0)
/// elements and contiguous in row-major order. Nothing for a tensor without elements.
///
///   shape [3, 4], at most 4 elements: [0:1, 0:4] [1:2, 0:4] [2:3, 0:4]
///   shape [3, 4], at most 3 elements: [0:1, 0:3] [0:1, 3:4] [1:2, 0:3] ...
void for_each_block(const Dims& shape, std::int64_t elements_max,
                    const std::function<void(const Box&)>& visit);

}  // namespace reprise
