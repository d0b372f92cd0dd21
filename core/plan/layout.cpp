#include "core/plan/layout.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace reprise {
namespace {

std::vector<std::int32_t> members_by_saver(const Mesh& mesh, const Group& savers) {
  if (mesh.members() == savers) {
    std::vector<std::int32_t> same(savers.members().size());
    std::iota(same.begin(), same.end(), 0);
    return same;
  }
  std::unordered_map<GlobalRank, std::size_t> group_rank;
  for (std::size_t r = 0; r < savers.members().size(); ++r) group_rank[savers.members()[r]] = r;
  std::vector<std::int32_t> members(savers.members().size(), -1);
  const auto& ranks = mesh.members().members();
  for (std::size_t m = 0; m < ranks.size(); ++m) {
    const auto found = group_rank.find(ranks[m]);
    if (found == group_rank.end()) {
      throw Error(Code::kLayoutMismatch, "rank " + std::to_string(ranks[m].value) +
                                             " is a member of a mesh and not of the group that "
                                             "saves; let all members of a mesh save together");
    }
    members[found->second] = static_cast<std::int32_t>(m);
  }
  return members;
}

Layout layout_of(const Placed& placed, const Dims& shape, ChunkRule rule) {
  Layout layout;
  layout.defect = prove_cover(shape, *placed.mesh, placed.placement, rule);
  if (layout.defect) return layout;
  std::vector<Box> all;
  all.reserve(static_cast<std::size_t>(placed.mesh->size()));
  for (std::int32_t m = 0; m < placed.mesh->size(); ++m) {
    all.push_back(placed.placement.box(shape, *placed.mesh, {m}, rule));
  }
  layout.boxes = all;
  layout.box_of.reserve(all.size());
  std::sort(layout.boxes.begin(), layout.boxes.end());
  layout.boxes.erase(std::unique(layout.boxes.begin(), layout.boxes.end()), layout.boxes.end());
  for (const Box& box : all) {
    const auto at = std::lower_bound(layout.boxes.begin(), layout.boxes.end(), box);
    layout.box_of.push_back(static_cast<std::uint32_t>(at - layout.boxes.begin()));
  }
  return layout;
}

}  // namespace

Layouts::Layouts(std::span<const Placed* const> placements, const Group& savers, ChunkRule rule)
    : placements_(placements), rule_(rule), known_(placements.size()) {
  for (const Placed* placed : placements) {
    members_.push_back(members_by_saver(*placed->mesh, savers));
  }
}

const Layout& Layouts::of(std::int32_t placement, const Dims& shape) {
  const auto p = static_cast<std::size_t>(placement);
  const auto found = known_[p].find(shape);
  if (found != known_[p].end()) return found->second;
  return known_[p].emplace(shape, layout_of(*placements_[p], shape, rule_)).first->second;
}

std::optional<GroupRank> Layouts::member(std::int32_t placement, GroupRank saver) const {
  const std::int32_t member =
      members_[static_cast<std::size_t>(placement)][static_cast<std::size_t>(saver.value)];
  if (member < 0) return std::nullopt;
  return GroupRank{member};
}

}  // namespace reprise
