#pragma once
// The parameters of one mesh on one rank, dense ones or experts, and the optimizer that they share.
// A job with experts chains two.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/fabric.hpp"
#include "sim/job/optimizer/optimizer_shard.hpp"

namespace reprise::sim {

struct Family {
  MeshKind kind = MeshKind::kDense;
  std::size_t chain = 0;  ///< index of its optimizer in the chain
  std::string prefix;     ///< prefix of its bucket keys: "chained_1." in a chain, else empty
  std::shared_ptr<const Mesh> mesh;
  GroupRank member;                     ///< this rank in the mesh
  Mesh sharing;                         ///< mesh of the axes that share the optimizer
  std::int32_t instances = 1;           ///< groups that hold copies of each other's shares
  std::int32_t bucket_group = 0;        ///< index of the model-parallel part: dp_group_idx
  std::shared_ptr<Communicator> group;  ///< the ranks that share
  std::vector<LocalParameter> parameters;
  OptimizerSettings settings;
  std::optional<OptimizerShard> optimizer;
  /// State that a checkpoint keeps under another sharding, until it is converted.
  std::optional<OptimizerShard> foreign;
};

/// Returns the family of one kind, with the parameters whose stages include this rank's, but
/// without group, optimizer and buffers. `slice` cuts dimensions. LAYOUT_MISMATCH if the layout
/// can't cut the model; `ranks` as in members_of, and `rank` is one of them.
Family family_of(MeshKind kind, const ModelSpec& model, const Layout& layout, GlobalRank rank,
                 ChunkRule slice, const std::vector<GlobalRank>& ranks = {});

/// Returns kDense, and kExpert if the model has experts.
std::vector<MeshKind> kinds_of(const ModelSpec& model);

/// Returns the ranks that share, in the order of `sharing`.
Group sharing_group(const Family& family);

/// Returns the model and sharing splits of a parameter that is kept tensor by tensor.
Placement shared_placement(const Placement& model, const Dims& shape, const Mesh& sharing,
                           const ShareRule& rule);

}  // namespace reprise::sim
