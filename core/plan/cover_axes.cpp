// Checks that the boxes of a placement cover the tensor. A box is the product of one interval per
// dimension, and each interval depends only on the axes that split its dimension. The boxes
// therefore tile the tensor if the intervals tile each dimension. This is the case if each split
// tiles the part that the earlier splits produced. Only a few different lengths occur per level, so
// the cost is about the sum of the axis sizes.

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/cover.hpp"

namespace reprise {
namespace {

struct Cut {
  std::string_view axis;
  std::int64_t parts;
};

struct Leaf {
  Interval interval;
  std::string who;  ///< coordinates such as "tp 1 fsdp 0", for messages
};

/// A gap, an overlap or a wrong extent in one dimension.
struct DimDefect {
  Code code;
  Interval where;
  std::string message;
};

std::vector<Cut> cuts_of(const Mesh& mesh, const Placement& placement, std::size_t dim) {
  std::vector<Cut> cuts;
  for (const Split& split : placement.splits()) {
    if (split.dim != dim) continue;
    if (const auto axis = mesh.axis(split.axis)) {
      cuts.push_back({split.axis, mesh.axes()[*axis].size});
    }
  }
  return cuts;
}

/// True if each split tiles every length that it divides. If so, the dimension is covered; this is
/// the usual case.
bool levels_tile(const std::vector<Cut>& cuts, std::int64_t length, ChunkRule rule) {
  if (cuts.empty()) return true;
  std::vector<std::int64_t> lengths = {length};
  std::vector<std::int64_t> shorter;
  for (std::size_t level = 0; level < cuts.size(); ++level) {
    const std::int64_t parts = cuts[level].parts;
    for (const std::int64_t whole : lengths) {
      if (!tiles(rule, whole, parts)) return false;
    }
    if (level + 1 == cuts.size()) return true;
    shorter.clear();
    for (const std::int64_t whole : lengths) {
      for (std::int64_t i = 0; i < parts; ++i) shorter.push_back(rule(whole, parts, i).length());
    }
    std::sort(shorter.begin(), shorter.end());
    shorter.erase(std::unique(shorter.begin(), shorter.end()), shorter.end());
    lengths.swap(shorter);
  }
  return true;
}

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

/// Returns one interval for each combination of coordinates on the axes that split the dimension,
/// as Placement::box computes it.
std::vector<Leaf> leaves_of(const std::vector<Cut>& cuts, std::int64_t length, ChunkRule rule) {
  std::vector<Leaf> leaves = {{{0, length}, ""}};
  for (const Cut& cut : cuts) {
    std::vector<Leaf> finer;
    for (const Leaf& leaf : leaves) {
      for (std::int64_t i = 0; i < cut.parts; ++i) {
        const Interval part = rule(leaf.interval.length(), cut.parts, i);
        const std::int64_t begin = saturating_add(leaf.interval.begin, part.begin);
        finer.push_back({{begin, saturating_add(begin, part.length())},
                         leaf.who + (leaf.who.empty() ? "" : " ") + std::string(cut.axis) + " " +
                             std::to_string(i)});
      }
    }
    leaves = std::move(finer);
  }
  return leaves;
}

std::string to_string(Interval interval) {
  return "[" + std::to_string(interval.begin) + ":" + std::to_string(interval.end) + "]";
}

std::vector<DimDefect> defects_of(std::vector<Leaf> leaves, std::int64_t length, std::size_t dim) {
  const std::string of_dim =
      " of dimension " + std::to_string(dim) + ", which has length " + std::to_string(length);
  for (const Leaf& leaf : leaves) {
    if (leaf.interval.begin < 0 || leaf.interval.end > length) {
      return {{Code::kExtentMismatch, leaf.interval,
               leaf.who + " is given " + to_string(leaf.interval) + of_dim}};
    }
  }
  std::erase_if(leaves, [](const Leaf& leaf) { return leaf.interval.length() == 0; });
  std::stable_sort(leaves.begin(), leaves.end(), [](const Leaf& a, const Leaf& b) {
    return a.interval.begin < b.interval.begin;
  });
  std::vector<DimDefect> defects;
  const auto gap = [&](Interval where) {
    defects.push_back({Code::kCoverageGap, where, "no rank is given " + to_string(where) + of_dim});
  };
  const Leaf* last = nullptr;  // the leaf that reaches furthest so far
  for (const Leaf& leaf : leaves) {
    const std::int64_t reached = last == nullptr ? 0 : last->interval.end;
    if (leaf.interval.begin > reached) gap({reached, leaf.interval.begin});
    if (leaf.interval.begin < reached) {
      defects.push_back({Code::kChunkOverlap,
                         {leaf.interval.begin, std::min(reached, leaf.interval.end)},
                         last->who + " is given " + to_string(last->interval) + " and " + leaf.who +
                             " is given " + to_string(leaf.interval) + of_dim});
    }
    if (leaf.interval.end > reached) last = &leaf;
  }
  const std::int64_t reached = last == nullptr ? 0 : last->interval.end;
  if (reached < length) gap({reached, length});
  return defects;
}

CoverDefect widened(const Dims& shape, std::size_t dim, const DimDefect& defect) {
  Box where = Box::whole(shape);
  where.offset[dim] = defect.where.begin;
  where.extent[dim] = defect.where.length();
  return {defect.code, where, defect.message};
}

}  // namespace

std::optional<CoverDefect> prove_cover(const Dims& shape, const Mesh& mesh,
                                       const Placement& placement, ChunkRule rule) {
  if (!checked_volume(shape)) return prove_cover(shape, {});
  // Throws if the placement does not fit this shape.
  static_cast<void>(placement.box(shape, mesh, GroupRank{0}, ceil_chunk));
  std::optional<CoverDefect> gap;
  std::optional<CoverDefect> overlap;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const auto cuts = cuts_of(mesh, placement, dim);
    if (levels_tile(cuts, shape[dim], rule)) continue;
    bool gap_here = false;
    for (const DimDefect& defect : defects_of(leaves_of(cuts, shape[dim], rule), shape[dim], dim)) {
      if (defect.code == Code::kExtentMismatch) return widened(shape, dim, defect);
      if (defect.code == Code::kChunkOverlap && !overlap) overlap = widened(shape, dim, defect);
      if (defect.code == Code::kCoverageGap && !gap_here) {
        gap_here = true;
        // A gap in one dimension is a gap of the tensor. An overlap is reported only if no
        // dimension has a gap.
        if (!gap) gap = widened(shape, dim, defect);
      }
    }
  }
  if (Box::whole(shape).empty()) return std::nullopt;
  return gap ? gap : overlap;
}

}  // namespace reprise
