#pragma once
// Finds the holder of each element by visiting the elements one by one. It is the reference for
// geometry and plans; it shares no code with them and uses only plain numbers.
//
// A split assigns elements to parts in the obvious way: it deals out the remaining elements ceil(n
// / parts) at a time. To find a rank's elements, it asks each element for its part.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reprise::brute {

using Numbers = std::vector<std::int64_t>;

/// Axes fastest first; members[i] is the rank at the i-th coordinate.
struct Grid {
  std::vector<std::pair<std::string, int>> axes;
  std::vector<int> members;
};

/// "axis splits dim", in order.
using Splits = std::vector<std::pair<std::string, int>>;

/// Returns the coordinates of the member at position `member`, one per axis, counting up from zero.
std::vector<int> coordinates(const Grid& grid, int member);

/// Returns the index of each element of the tensor, dimension by dimension, in row-major
/// order.
std::vector<Numbers> all_indices(const Numbers& shape);

/// Returns held[m][e]: true if the member at position m holds element e (row-major).
std::vector<std::vector<bool>> holders(const Numbers& shape, const Grid& grid,
                                       const Splits& splits);

/// Returns the members (as ranks) that differ from the one at `member` only along the named axes,
/// ordered by their coordinates on these axes; the first named axis varies fastest.
std::vector<int> group_along(const Grid& grid, int member, const std::vector<std::string>& names);

/// Counts the boxes (offset, extent) that hold each element of the tensor, row-major. Boxes may
/// extend beyond the tensor.
std::vector<int> times_covered(const Numbers& shape,
                               const std::vector<std::pair<Numbers, Numbers>>& boxes);

}  // namespace reprise::brute
