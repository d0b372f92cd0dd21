#pragma once
// Cuts a tensor into boxes of bounded size, in row-major order. Comparing box by box therefore
// finds the difference with the lowest global index first.

#include <cstdint>
#include <functional>

#include "core/geometry/box.hpp"

namespace reprise {

/// Calls `visit` for boxes that tile a tensor of this shape. Each box is contiguous in row-major
/// order and has at most `elements_max` (> 0) elements. A tensor without elements has no boxes.
///
///   shape [3, 4], at most 4 elements: [0:1, 0:4] [1:2, 0:4] [2:3, 0:4]
///   shape [3, 4], at most 3 elements: [0:1, 0:3] [0:1, 3:4] [1:2, 0:3] ...
void for_each_block(const Dims& shape, std::int64_t elements_max,
                    const std::function<void(const Box&)>& visit);
/// The same for boxes that tile a part of a tensor.
void for_each_block(const Box& part, std::int64_t elements_max,
                    const std::function<void(const Box&)>& visit);

}  // namespace reprise
