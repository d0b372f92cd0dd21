#pragma once
// The parameters of one mesh on one rank, dense ones or experts, with the optimizer that they
// share: a job with experts chains two.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/fabric.hpp"
#include "sim/job/optimizer_shard.hpp"

namespace reprise::sim {

struct Family {
  MeshKind kind = MeshKind::kDense;
  std::size_t chain = 0;  ///< which of the chain's optimizers is its own
  std::string prefix;     ///< of its bucket keys: "chained_1." in a chain, else empty
  std::shared_ptr<const Mesh> mesh;
  GroupRank member;                     ///< this rank, in the mesh
  Mesh sharing;                         ///< of the axes that share the optimizer alone
  std::int32_t instances = 1;           ///< groups that hold copies of one another's shares
  std::int32_t bucket_group = 0;        ///< which model-parallel part: dp_group_idx
  std::shared_ptr<Communicator> group;  ///< the ranks that share
  std::vector<LocalParameter> parameters;
  OptimizerSettings settings;
  std::optional<OptimizerShard> optimizer;
  /// What a checkpoint keeps under another sharding, until it is converted.
  std::optional<OptimizerShard> foreign;
};

/// Of one kind, with the parameters whose stages include this rank's. Without group, optimizer and
/// buffers. `slice` cuts dimensions. A model that the layout can't cut is refused
/// (LAYOUT_MISMATCH); `ranks` as in members_of, and `rank` is one of them.
Family family_of(MeshKind kind, const ModelSpec& model, const Layout& layout, GlobalRank rank,
                 ChunkRule slice, const std::vector<GlobalRank>& ranks = {});

/// Dense parameters, and experts if there are any.
std::vector<MeshKind> kinds_of(const ModelSpec& model);

/// The ranks that share, in the order of `sharing`.
Group sharing_group(const Family& family);

/// Model and sharing splits of a parameter that is kept tensor by tensor.
Placement shared_placement(const Placement& model, const Dims& shape, const Mesh& sharing,
                           const ShareRule& rule);

}  // namespace reprise::sim
