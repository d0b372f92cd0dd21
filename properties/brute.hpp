#pragma once
// Who holds which element, by going through all elements one by one. The reference for geometry and
// plans; it shares no code with them and knows only plain numbers.
//
// A split gives each element a part in the obvious way: the elements that are left are dealt out
// ceil(n / parts) at a time. So a rank's elements are found by asking each element where it went.

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

/// Coordinates of the member at position `member`, one per axis, by counting up from zero.
std::vector<int> coordinates(const Grid& grid, int member);

/// For each element of the tensor in row-major order the index of the element, dimension by
/// dimension.
std::vector<Numbers> all_indices(const Numbers& shape);

/// held[m][e]: does the member at position m hold element e (row-major)?
std::vector<std::vector<bool>> holders(const Numbers& shape, const Grid& grid,
                                       const Splits& splits);

/// Members (as ranks) that differ from the one at `member` along the named axes alone, in the order
/// of their coordinates along these axes, the first named varying fastest.
std::vector<int> group_along(const Grid& grid, int member, const std::vector<std::string>& names);

/// How many of the boxes (offset, extent) hold each element of the tensor, row-major; boxes may
/// leave it.
std::vector<int> times_covered(const Numbers& shape,
                               const std::vector<std::pair<Numbers, Numbers>>& boxes);

}  // namespace reprise::brute
