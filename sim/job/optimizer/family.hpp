#pragma once
// Defines a family: either the dense or the expert parameters of one rank, with the optimizer that
// updates them. A job with experts has two families, whose optimizers form a chain.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/fabric.hpp"
#include "sim/job/optimizer/optimizer_shard.hpp"

namespace reprise::sim {

struct Family {
  MeshKind kind = MeshKind::kDense;
  std::size_t chain = 0;  ///< index of the family's optimizer in the chain
  std::string prefix;     ///< prefix of bucket keys: "chained_1." in a chain, otherwise empty
  std::shared_ptr<const Mesh> mesh;
  GroupRank member;            ///< this rank's index in the mesh
  Mesh sharing;                ///< mesh of the axes along which ranks share the optimizer
  std::int32_t instances = 1;  ///< number of groups that hold copies of the same shares
  /// Index of this rank's model-parallel part; used as dp_group_idx in keys.
  std::int32_t bucket_group = 0;
  std::shared_ptr<Communicator> group;  ///< ranks that share the optimizer
  std::vector<LocalParameter> parameters;
  OptimizerSettings settings;
  std::optional<OptimizerShard> optimizer;
  /// Loaded state in the checkpoint's sharding; empty once it has been converted to this job's
  /// sharding.
  std::optional<OptimizerShard> foreign;
};

/// Returns the family of one kind on `rank`. The family has the parameters of the rank's stages,
/// but no group, optimizer or buffers yet. `slice` is the rule that splits dimensions. `ranks` are
/// the job's ranks in the layout's order, as for members_of, and include `rank`. Throws
/// LAYOUT_MISMATCH if the layout can't split the model.
Family family_of(MeshKind kind, const ModelSpec& model, const Layout& layout, GlobalRank rank,
                 ChunkRule slice, const std::vector<GlobalRank>& ranks = {});

/// Returns kDense; if the model has experts, returns kDense and kExpert.
std::vector<MeshKind> kinds_of(const ModelSpec& model);

/// Returns the ranks that share the optimizer, in the order of `sharing`.
Group sharing_group(const Family& family);

/// Returns the splits of a parameter whose optimizer state is kept tensor by tensor. The model's
/// splits come first, then the splits that divide the state among the sharing ranks.
Placement shared_placement(const Placement& model, const Dims& shape, const Mesh& sharing,
                           const ShareRule& rule);

}  // namespace reprise::sim
