#pragma once
// Finds the ranks that hold each element by visiting all elements. Tests compare geometry and plans
// with the result. This code shares nothing with them and uses only plain numbers.
//
// A split of n indices gives ceil(n / parts) indices to each part in turn, until none are left. A
// rank holds an element if it holds the part that contains the element.

#include <algorithm>
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
inline std::vector<int> coordinates(const Grid& grid, int member) {
  std::vector<int> at(grid.axes.size(), 0);
  for (int step = 0; step < member; ++step) {
    for (std::size_t a = 0; a < at.size(); ++a) {
      if (++at[a] < grid.axes[a].second) break;
      at[a] = 0;
    }
  }
  return at;
}

/// Returns the indices of all elements of a tensor in row-major order. An index has one number per
/// dimension.
inline std::vector<Numbers> all_indices(const Numbers& shape) {
  std::vector<Numbers> all = {{}};
  for (const std::int64_t extent : shape) {
    std::vector<Numbers> longer;
    for (const Numbers& index : all) {
      for (std::int64_t i = 0; i < extent; ++i) {
        longer.push_back(index);
        longer.back().push_back(i);
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// The result of one split for one index of a dimension: the index is in part number `part` along
/// `axis`. Later splits divide the parts of earlier splits.
struct Dealt {
  std::string axis;
  int part;
};

inline std::vector<std::vector<Dealt>> deal(std::int64_t extent, int dim, const Grid& grid,
                                            const Splits& splits) {
  std::vector<std::vector<Dealt>> dealt(static_cast<std::size_t>(extent));
  std::vector<Numbers> hands(1);
  for (std::int64_t i = 0; i < extent; ++i) hands[0].push_back(i);
  for (const auto& [axis, split_dim] : splits) {
    if (split_dim != dim) continue;
    const auto found = std::find_if(grid.axes.begin(), grid.axes.end(),
                                    [&name = axis](const auto& a) { return a.first == name; });
    if (found == grid.axes.end()) continue;
    const auto parts = static_cast<std::size_t>(found->second);
    std::vector<Numbers> smaller;
    for (const Numbers& hand : hands) {
      std::size_t most = hand.size() / parts;
      if (hand.size() % parts != 0) ++most;
      std::vector<Numbers> piles(parts);
      std::size_t pile = 0;
      for (const std::int64_t card : hand) {
        if (piles[pile].size() == most) ++pile;
        piles[pile].push_back(card);
        dealt[static_cast<std::size_t>(card)].push_back({axis, static_cast<int>(pile)});
      }
      smaller.insert(smaller.end(), piles.begin(), piles.end());
    }
    hands = std::move(smaller);
  }
  return dealt;
}

/// Returns held[m][e], which is true if the member at position m holds element e (row-major).
inline std::vector<std::vector<bool>> holders(const Numbers& shape, const Grid& grid,
                                              const Splits& splits) {
  std::vector<std::vector<std::vector<Dealt>>> dealt;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    dealt.push_back(deal(shape[d], static_cast<int>(d), grid, splits));
  }
  const auto indices = all_indices(shape);
  std::vector<std::vector<bool>> held;
  for (int m = 0; m < static_cast<int>(grid.members.size()); ++m) {
    const auto at = coordinates(grid, m);
    auto& mine = held.emplace_back();
    for (const Numbers& index : indices) {
      bool holds = true;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        for (const Dealt& went : dealt[d][static_cast<std::size_t>(index[d])]) {
          for (std::size_t a = 0; a < grid.axes.size(); ++a) {
            if (grid.axes[a].first == went.axis && at[a] != went.part) holds = false;
          }
        }
      }
      mine.push_back(holds);
    }
  }
  return held;
}

/// Returns the ranks of the members that differ from the member at `member` only along the named
/// axes. They are ordered by their coordinates on these axes; the first named axis varies fastest.
inline std::vector<int> group_along(const Grid& grid, int member,
                                    const std::vector<std::string>& names) {
  const auto mine = coordinates(grid, member);
  std::vector<std::pair<std::vector<int>, int>> found;
  for (int m = 0; m < static_cast<int>(grid.members.size()); ++m) {
    const auto at = coordinates(grid, m);
    bool same = true;
    // `order` is the sort key. The slowest axis comes first in it, so that the first named axis
    // varies fastest after sorting.
    std::vector<int> order;
    for (std::size_t a = 0; a < at.size(); ++a) {
      const bool named = std::count(names.begin(), names.end(), grid.axes[a].first) > 0;
      if (!named && at[a] != mine[a]) same = false;
    }
    for (std::size_t n = names.size(); n-- > 0;) {
      for (std::size_t a = 0; a < at.size(); ++a) {
        if (grid.axes[a].first == names[n]) order.push_back(at[a]);
      }
    }
    if (same) found.emplace_back(order, grid.members[static_cast<std::size_t>(m)]);
  }
  std::sort(found.begin(), found.end());
  std::vector<int> ranks;
  for (const auto& [order, rank] : found) ranks.push_back(rank);
  return ranks;
}

/// Returns, for each element of the tensor in row-major order, how many boxes (offset, extent)
/// contain it. Boxes may extend beyond the tensor.
inline std::vector<int> times_covered(const Numbers& shape,
                                      const std::vector<std::pair<Numbers, Numbers>>& boxes) {
  std::vector<int> times;
  for (const Numbers& index : all_indices(shape)) {
    int count = 0;
    for (const auto& [offset, extent] : boxes) {
      bool inside = true;
      for (std::size_t d = 0; d < index.size(); ++d) {
        inside = inside && index[d] >= offset[d] && index[d] - offset[d] < extent[d];
      }
      count += inside ? 1 : 0;
    }
    times.push_back(count);
  }
  return times;
}

}  // namespace reprise::brute
