#pragma once
// Defines one rank's part of one parameter for the forward pass: its bf16 compute copy.
//
//   fc1 [54, 24], tp2 dp2, rank tp 0 dp 1:
//     weight  bf16   rows  [0, 27)   the compute copy, equal on all dp ranks
//   and in the optimizer (see optimizer_shard.hpp), under fully_reshardable:
//     master  fp32   rows [14, 27)   this rank's share, with exp_avg and exp_avg_sq
//     stored  bf16   rows [14, 27)   where a load puts this rank's share of the weights

#include <cstdint>
#include <memory>
#include <vector>

#include "reprise/mesh.hpp"
#include "sim/job/model/array.hpp"
#include "sim/job/model/content.hpp"
#include "sim/job/model/local_tensor.hpp"
#include "sim/job/model/model.hpp"
#include "sim/job/model/progress.hpp"

namespace reprise::sim {

struct LocalParameter {
  ParameterSpec spec;
  std::shared_ptr<const Mesh> mesh;  ///< mesh of the ranks in all stages that hold the parameter
  GroupRank member;                  ///< this rank's index in that mesh
  LocalTensor tensor;
  std::vector<Piece> pieces;  ///< pieces of `weight`
  Copy copy;                  ///< copy index of this rank's part
  Copy share_copy;            ///< copy index of this rank's share of the optimizer's state
  bool in_sync = true;        ///< true if the group that sums the gradients includes this rank

  Array<std::uint16_t> weight;  ///< the local array, row-major
};

/// Returns the start values of a parameter's elements, for weights and masters.
StartValues start_values(const ParameterSpec& spec, std::uint64_t seed);
/// Fills the compute copy with start values. Its array must be allocated.
void initialise(LocalParameter& parameter, std::uint64_t seed);

/// Returns this rank's part of the loss. Each element contributes on exactly one rank.
std::int64_t local_loss(const LocalParameter& parameter, const TrainingProgress& progress);

}  // namespace reprise::sim
