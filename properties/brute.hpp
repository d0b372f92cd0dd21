#pragma once
// Finds the ranks that hold each element by visiting all elements. Tests compare geometry and plans
// with the result. This code shares nothing with them and uses only plain numbers.
//
// A split of n indices gives ceil(n / parts) indices to each part in turn, until none are left. A
// rank holds an element if it holds the part that contains the element.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reprise::brute {

using Numbers = std::vector<std::int64_t>;

/// A mesh as plain numbers. The first axis varies fastest; members[i] is the rank at position i.
struct Grid {
  std::vector<std::pair<std::string, int>> axes;
  std::vector<int> members;
};

/// A list of splits in order; each pair is an axis and the dimension that it splits.
using Splits = std::vector<std::pair<std::string, int>>;

/// Returns the coordinates of the member at position `member`, one per axis.
std::vector<int> coordinates(const Grid& grid, int member);

/// Returns the indices of all elements of a tensor in row-major order. An index has one number per
/// dimension.
std::vector<Numbers> all_indices(const Numbers& shape);

/// Returns held[m][e], which is true if the member at position m holds element e (row-major).
std::vector<std::vector<bool>> holders(const Numbers& shape, const Grid& grid,
                                       const Splits& splits);

/// Returns the ranks of the members that differ from the member at `member` only along the named
/// axes. They are ordered by their coordinates on these axes; the first named axis varies fastest.
std::vector<int> group_along(const Grid& grid, int member, const std::vector<std::string>& names);

/// Returns, for each element of the tensor in row-major order, how many boxes (offset, extent)
/// contain it. Boxes may extend beyond the tensor.
std::vector<int> times_covered(const Numbers& shape,
                               const std::vector<std::pair<Numbers, Numbers>>& boxes);

}  // namespace reprise::brute
