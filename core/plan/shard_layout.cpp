#include "core/plan/shard_layout.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

namespace reprise {
namespace {

using Savers = std::unordered_map<GlobalRank, std::int32_t>;  // used for lookups only

Savers numbered(const Group& savers) {
  Savers numbers;
  numbers.reserve(savers.members().size());
  for (const GlobalRank rank : savers.members()) {
    numbers.emplace(rank, static_cast<std::int32_t>(numbers.size()));
  }
  return numbers;
}

Members members_of(const Mesh& mesh, const Savers& savers) {
  // One pair per mesh member: its position in the saving group, and its position in the mesh.
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  pairs.reserve(static_cast<std::size_t>(mesh.size()));
  for (const GlobalRank rank : mesh.members().members()) {
    const auto found = savers.find(rank);
    if (found == savers.end()) {
      throw Error(Code::kLayoutMismatch, "rank " + std::to_string(rank.value) +
                                             " is a member of a mesh but not of the group that "
                                             "saves; let all members of a mesh save together");
    }
    pairs.emplace_back(found->second, static_cast<std::int32_t>(pairs.size()));
  }
  if (!std::is_sorted(pairs.begin(), pairs.end())) std::sort(pairs.begin(), pairs.end());
  Members members;
  for (const auto& [saver, member] : pairs) {
    members.savers.push_back({saver});
    members.members.push_back({member});
  }
  return members;
}

bool before(Interval a, Interval b) {
  return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
}

/// Computes all boxes of a placement, and the box of each mesh member. Each dimension is tiled by
/// intervals; each box is a product of one interval per dimension.
class Product {
 public:
  Product(const Placed& placed, const Dims& shape, ChunkRule rule)
      : mesh_(*placed.mesh), dims_(shape.size()) {
    for (std::size_t d = 0; d < dims_; ++d) {
      cut_dim(placed, d, shape[d], rule);
      size_ *= cuts_[d].intervals;
    }
  }

  std::vector<Box> boxes() const {
    std::vector<Box> boxes(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      Box& box = boxes[i] = Box::whole(Dims::filled(dims_, 0));
      std::size_t rest = i;
      for (std::size_t d = dims_; d-- > 0;) {
        const DimCut& cut = cuts_[d];
        const Interval interval = intervals_[cut.first_interval + rest % cut.intervals];
        rest /= cut.intervals;
        box.offset[d] = interval.begin;
        box.extent[d] = interval.length();
      }
    }
    return boxes;
  }

  std::uint32_t box_of(GroupRank member) const {
    std::size_t box = 0;
    for (const DimCut& cut : std::span(cuts_).first(dims_)) {
      std::size_t leaf = 0;
      for (const AxisIndex axis : std::span(axes_).subspan(cut.first_axis, cut.axes)) {
        leaf = leaf * static_cast<std::size_t>(mesh_.axes()[axis].size) +
               static_cast<std::size_t>(mesh_.coordinate(member, axis));
      }
      const std::uint32_t interval = interval_of_[cut.first_leaf + leaf];
      if (interval == ShardLayout::kNoBox) return ShardLayout::kNoBox;
      box = box * cut.intervals + interval;
    }
    return static_cast<std::uint32_t>(box);
  }

 private:
  /// Says how axes of the mesh split one dimension. The first axis makes the coarsest split.
  struct DimCut {
    std::size_t first_axis = 0;  ///< its axes are axes_[first_axis..first_axis + axes)
    std::size_t axes = 0;
    std::size_t first_interval = 0;  ///< its distinct non-empty leaves, likewise, sorted
    std::size_t intervals = 0;
    std::size_t first_leaf = 0;  ///< of its leaves in interval_of_, last axis fastest
  };

  void cut_dim(const Placed& placed, std::size_t dim, std::int64_t length, ChunkRule rule) {
    DimCut& cut = cuts_[dim];
    cut.first_axis = axes_.size();
    leaves_.assign(1, {0, length});
    for (const Split& split : placed.placement.splits()) {
      if (split.dim != dim) continue;
      const auto axis = mesh_.axis(split.axis);
      if (!axis) continue;
      axes_.push_back(*axis);
      const std::int32_t parts = mesh_.axes()[*axis].size;
      finer_.clear();
      for (const Interval leaf : leaves_) {
        for (std::int32_t i = 0; i < parts; ++i) {
          const Interval part = rule(leaf.length(), parts, i);
          finer_.push_back({leaf.begin + part.begin, leaf.begin + part.begin + part.length()});
        }
      }
      leaves_.swap(finer_);
    }
    cut.axes = axes_.size() - cut.first_axis;
    cut.first_interval = intervals_.size();
    for (const Interval leaf : leaves_) {
      if (leaf.length() > 0) intervals_.push_back(leaf);
    }
    const auto own = std::span(intervals_).subspan(cut.first_interval);
    std::sort(own.begin(), own.end(), before);
    cut.intervals = own.size();
    cut.first_leaf = interval_of_.size();
    for (const Interval leaf : leaves_) {
      const auto at = std::lower_bound(own.begin(), own.end(), leaf, before);
      interval_of_.push_back(leaf.length() == 0 ? ShardLayout::kNoBox
                                                : static_cast<std::uint32_t>(at - own.begin()));
    }
  }

  const Mesh& mesh_;
  std::size_t dims_;
  std::size_t size_ = 1;
  std::array<DimCut, kMaxNdim> cuts_;
  // These lists hold the parts of all cuts, one dimension after another.
  std::vector<AxisIndex> axes_;
  std::vector<Interval> intervals_;
  /// For each leaf, its index among the intervals of its dimension, or kNoBox.
  std::vector<std::uint32_t> interval_of_;
  // The leaves of the dimension that is being cut: one per combination of coordinates.
  std::vector<Interval> leaves_;
  std::vector<Interval> finer_;
};

ShardLayout layout_of(const Placed& placed, const Members& members, const Dims& shape,
                      ChunkRule rule) {
  ShardLayout layout;
  layout.defect = prove_cover(shape, *placed.mesh, placed.placement, rule);
  if (layout.defect) return layout;
  const Product product(placed, shape, rule);
  auto boxes = product.boxes();
  layout.box_of.reserve(static_cast<std::size_t>(placed.mesh->size()));
  for (std::int32_t m = 0; m < placed.mesh->size(); ++m) {
    layout.box_of.push_back(product.box_of({m}));
  }
  HeldBoxes& held = layout.held;
  held.first.assign(boxes.size() + 1, 0);
  for (const std::uint32_t box : layout.box_of) {
    if (box != ShardLayout::kNoBox) ++held.first[box + 1];
  }
  std::partial_sum(held.first.begin(), held.first.end(), held.first.begin());
  held.holders.resize(held.first.back());
  auto next = held.first;
  for (std::size_t i = 0; i < members.savers.size(); ++i) {
    const auto member = static_cast<std::size_t>(members.members[i].value);
    const std::uint32_t box = layout.box_of[member];
    if (box != ShardLayout::kNoBox) held.holders[next[box]++] = members.savers[i];
  }
  held.boxes = std::make_shared<const std::vector<Box>>(std::move(boxes));
  batch_boxes(held);
  return layout;
}

}  // namespace

ShardLayouts::ShardLayouts(std::span<const Placed* const> placements, const Group& savers,
                           ChunkRule rule)
    : placements_(placements), rule_(rule), known_(placements.size()) {
  const Savers numbers = numbered(savers);
  for (const Placed* placed : placements) members_.push_back(members_of(*placed->mesh, numbers));
}

const ShardLayout& ShardLayouts::of(std::uint32_t placement, const Dims& shape) {
  const auto found = known_[placement].find(shape);
  if (found != known_[placement].end()) return found->second;
  return known_[placement]
      .emplace(shape, layout_of(*placements_[placement], members_[placement], shape, rule_))
      .first->second;
}

std::optional<GroupRank> ShardLayouts::member(std::uint32_t placement, GroupRank saver) const {
  const Members& members = members_[placement];
  const auto found = std::lower_bound(members.savers.begin(), members.savers.end(), saver);
  if (found == members.savers.end() || *found != saver) return std::nullopt;
  return members.members[static_cast<std::size_t>(found - members.savers.begin())];
}

void check_members(const OfferBook& book, const ShardLayouts& layouts, const Group& savers) {
  for (const Section& section : book.sections()) {
    for (const std::uint32_t placement : section.placement) {
      for (const GroupRank rank : section.ranks) {
        if (layouts.member(placement, rank)) continue;
        throw Error(Code::kLayoutMismatch,
                    "rank " + std::to_string(savers.member(rank).value) +
                        " offers keys on a mesh of which it is not a member",
                    {.rank = savers.member(rank)});
      }
    }
  }
}

}  // namespace reprise
