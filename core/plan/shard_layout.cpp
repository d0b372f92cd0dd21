#include "core/plan/shard_layout.hpp"

#include <algorithm>
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

/// Describes how axes of the mesh split one dimension. The first axis makes the coarsest split.
struct DimCut {
  std::vector<AxisIndex> axes;
  std::vector<Interval> leaves;     ///< one per combination of coordinates, last axis fastest
  std::vector<Interval> intervals;  ///< the distinct non-empty leaves, sorted
  std::vector<std::uint32_t> interval_of;  ///< for each leaf, its index in `intervals`, or kNoBox
};

bool before(Interval a, Interval b) {
  return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
}

DimCut cut_of(const Placed& placed, std::size_t dim, std::int64_t length, ChunkRule rule) {
  DimCut cut;
  cut.leaves = {{0, length}};
  for (const Split& split : placed.placement.splits()) {
    if (split.dim != dim) continue;
    const auto axis = placed.mesh->axis(split.axis);
    if (!axis) continue;
    cut.axes.push_back(*axis);
    const std::int32_t parts = placed.mesh->axes()[*axis].size;
    std::vector<Interval> finer;
    finer.reserve(cut.leaves.size() * static_cast<std::size_t>(parts));
    for (const Interval leaf : cut.leaves) {
      for (std::int32_t i = 0; i < parts; ++i) {
        const Interval part = rule(leaf.length(), parts, i);
        finer.push_back({leaf.begin + part.begin, leaf.begin + part.begin + part.length()});
      }
    }
    cut.leaves = std::move(finer);
  }
  for (const Interval leaf : cut.leaves) {
    if (leaf.length() > 0) cut.intervals.push_back(leaf);
  }
  std::sort(cut.intervals.begin(), cut.intervals.end(), before);
  cut.interval_of.reserve(cut.leaves.size());
  for (const Interval leaf : cut.leaves) {
    const auto at = std::lower_bound(cut.intervals.begin(), cut.intervals.end(), leaf, before);
    cut.interval_of.push_back(leaf.length() == 0
                                  ? ShardLayout::kNoBox
                                  : static_cast<std::uint32_t>(at - cut.intervals.begin()));
  }
  return cut;
}

/// Computes all boxes of a placement, and the box of each mesh member. Each dimension is tiled by
/// intervals; each box is a product of one interval per dimension.
class Product {
 public:
  Product(const Placed& placed, const Dims& shape, ChunkRule rule) : mesh_(*placed.mesh) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      cuts_.push_back(cut_of(placed, d, shape[d], rule));
      size_ *= cuts_.back().intervals.size();
    }
  }

  std::vector<Box> boxes() const {
    std::vector<Box> boxes(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      Box& box = boxes[i] = Box::whole(Dims::filled(cuts_.size(), 0));
      std::size_t rest = i;
      for (std::size_t d = cuts_.size(); d-- > 0;) {
        const auto& intervals = cuts_[d].intervals;
        const Interval interval = intervals[rest % intervals.size()];
        rest /= intervals.size();
        box.offset[d] = interval.begin;
        box.extent[d] = interval.length();
      }
    }
    return boxes;
  }

  std::uint32_t box_of(GroupRank member) const {
    std::size_t box = 0;
    for (const DimCut& cut : cuts_) {
      std::size_t leaf = 0;
      for (const AxisIndex axis : cut.axes) {
        leaf = leaf * static_cast<std::size_t>(mesh_.axes()[axis].size) +
               static_cast<std::size_t>(mesh_.coordinate(member, axis));
      }
      if (cut.interval_of[leaf] == ShardLayout::kNoBox) return ShardLayout::kNoBox;
      box = box * cut.intervals.size() + cut.interval_of[leaf];
    }
    return static_cast<std::uint32_t>(box);
  }

 private:
  const Mesh& mesh_;
  std::vector<DimCut> cuts_;
  std::size_t size_ = 1;
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
