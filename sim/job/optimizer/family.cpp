#include "sim/job/optimizer/family.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

using AxisNames = std::vector<std::string_view>;

/// Returns the axes along which ranks share the optimizer, fastest first.
AxisNames sharing_axes(MeshKind kind) {
  if (kind == MeshKind::kExpert) return {"edp_shard"};
  AxisNames axes = copy_axes();
  std::erase(axes, "dp_replicate");
  return axes;
}
/// Returns the axes along which ranks hold different parts of the model, fastest first.
AxisNames part_axes(MeshKind kind) {
  return kind == MeshKind::kDense ? sim::part_axes() : expert_part_axes();
}

Mesh sharing_mesh(const Mesh& mesh, MeshKind kind) {
  std::vector<Axis> axes;
  for (const auto name : sharing_axes(kind)) {
    axes.push_back({std::string(name), mesh.axis_size(name)});
  }
  return Mesh(axes);
}

std::int32_t part_index(const Mesh& mesh, GroupRank member, MeshKind kind) {
  std::int32_t index = 0;
  std::int32_t stride = 1;
  for (const auto name : part_axes(kind)) {
    index += stride * mesh.coordinate(member, name);
    stride *= mesh.axis_size(name);
  }
  return index;
}

/// Returns the mesh of those ranks in `mesh` whose coordinate on axis `name` is one of
/// `coordinates`. The ranks keep their order.
std::shared_ptr<const Mesh> part_of(const std::shared_ptr<const Mesh>& mesh, std::string_view name,
                                    const std::vector<std::int32_t>& coordinates) {
  const auto axis = mesh->axis(name);
  CHECK(axis.has_value());
  if (static_cast<std::int32_t>(coordinates.size()) == mesh->axis_size(name)) return mesh;
  std::vector<Axis> axes = mesh->axes();
  axes[*axis].size = static_cast<std::int32_t>(coordinates.size());
  std::vector<GlobalRank> members;
  for (std::int32_t m = 0; m < mesh->size(); ++m) {
    const auto own = mesh->coordinate({m}, *axis);
    if (std::find(coordinates.begin(), coordinates.end(), own) != coordinates.end()) {
      members.push_back(mesh->members().member({m}));
    }
  }
  return std::make_shared<const Mesh>(axes, Group(std::move(members)));
}

/// The ranks that hold a parameter, as coordinates along two axes of its mesh.
struct HeldBy {
  std::vector<std::int32_t> stages;
  std::vector<std::int32_t> expert_ranks;  ///< coordinates on ep; empty means all

  friend bool operator<(const HeldBy& a, const HeldBy& b) {
    return std::tie(a.stages, a.expert_ranks) < std::tie(b.stages, b.expert_ranks);
  }
  bool has(const Mesh& mesh, GroupRank member) const {
    const auto in = [&](const std::vector<std::int32_t>& some, std::string_view axis) {
      return std::find(some.begin(), some.end(), mesh.coordinate(member, axis)) != some.end();
    };
    return in(stages, "pp") && (expert_ranks.empty() || in(expert_ranks, "ep"));
  }
  std::shared_ptr<const Mesh> of(const std::shared_ptr<const Mesh>& mesh) const {
    const auto on_stages = part_of(mesh, "pp", stages);
    return expert_ranks.empty() ? on_stages : part_of(on_stages, "ep", expert_ranks);
  }
};

void refuse_uneven_fusion(const ParameterSpec& spec) {
  if (spec.fused.components <= 1) return;
  if (spec.shape[spec.fused.dim] % spec.fused.components == 0) return;
  throw Error(Code::kLayoutMismatch,
              "dimension " + std::to_string(spec.fused.dim) + " of " + to_string(spec.shape) +
                  " does not come apart into " + std::to_string(spec.fused.components) +
                  " equal components",
              {.key = spec.key});
}

}  // namespace

Family family_of(MeshKind kind, const ModelSpec& model, const Layout& layout, GlobalRank rank,
                 ChunkRule slice, const std::vector<GlobalRank>& ranks) {
  const auto mesh = std::make_shared<const Mesh>(
      kind == MeshKind::kDense ? dense_mesh(layout, ranks) : expert_mesh(layout, ranks));
  const auto own = mesh->members().rank_of(rank);
  CHECK(own.has_value(), rank, mesh->members());
  Family family{.kind = kind, .mesh = mesh, .sharing = sharing_mesh(*mesh, kind)};
  family.member = *own;
  family.instances = kind == MeshKind::kDense ? layout.dp_replicate : layout.expert_copies();
  family.bucket_group = part_index(*mesh, family.member, kind);
  family.chain = kind == MeshKind::kDense ? 0 : 1;
  if (model.has_experts()) family.prefix = "chained_" + std::to_string(family.chain) + ".";
  std::map<HeldBy, std::shared_ptr<const Mesh>> meshes;
  for (const auto& spec : model.parameters) {
    if (spec.mesh != kind) continue;
    refuse_uneven_fusion(spec);
    HeldBy holders{stages_of(spec, model, layout), {}};
    if (spec.expert) holders.expert_ranks = {expert_rank_of(*spec.expert, layout.ep, slice)};
    if (!holders.has(*mesh, *own)) continue;
    auto& held_by = meshes[holders];
    if (!held_by) held_by = holders.of(mesh);
    const GroupRank member = *held_by->members().rank_of(rank);
    LocalParameter parameter{.spec = spec, .mesh = held_by, .member = member};
    parameter.tensor = local_tensor(spec, spec.placement, *held_by, member, slice);
    const Box whole = parameter.tensor.whole();
    parameter.pieces = pieces_in_place(parameter.tensor, {&whole, 1});
    parameter.copy = {spec.placement.replica(*held_by, member), spec.placement.replicas(*held_by)};
    family.parameters.push_back(std::move(parameter));
  }
  return family;
}

std::vector<MeshKind> kinds_of(const ModelSpec& model) {
  std::vector<MeshKind> kinds = {MeshKind::kDense};
  if (model.has_experts()) kinds.push_back(MeshKind::kExpert);
  return kinds;
}

Group sharing_group(const Family& family) {
  return family.mesh->group_along(family.member, sharing_axes(family.kind));
}

Placement shared_placement(const Placement& model, const Dims& shape, const Mesh& sharing,
                           const ShareRule& rule) {
  auto splits = model.splits();
  const bool flat = rule.sharding == Sharding::kFullyShardedModelSpace ||
                    rule.sharding == Sharding::kDpReshardable;
  // A tensor without dimensions also becomes a flattened range. Its length is 1, so one rank holds
  // it.
  const auto shares = flat ? share_splits({1}, 0, sharing) : share_splits(shape, rule.dim, sharing);
  splits.insert(splits.end(), shares.begin(), shares.end());
  return Placement(std::move(splits));
}

}  // namespace reprise::sim
