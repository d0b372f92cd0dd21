#pragma once
// What one rank holds of one parameter.
//
//   fc1 [54, 24], tp2 dp2, rank tp 0 dp 1:
//     weight  bf16   rows  0..27   the compute copy; dp ranks hold the same
//     master  fp32   rows 14..27   this rank's share of the optimizer, with exp_avg and exp_avg_sq
//     stored  bf16   rows 14..27   where a load puts this rank's share of the weights

#include <cstdint>
#include <span>
#include <vector>

#include "core/geometry/mesh.hpp"
#include "core/geometry/placement.hpp"
#include "core/ports/fabric.hpp"
#include "sim/job/content.hpp"
#include "sim/job/model.hpp"
#include "sim/job/progress.hpp"

namespace reprise::sim {

struct LocalParameter {
  ParameterSpec spec;
  Placement own_placement;  ///< of the optimizer's tensors
  Box weight_box;
  std::vector<Box> dp_boxes;  ///< shares of the dp group's ranks within weight_box, in group order
  Box own_box;                ///< this rank's
  std::int32_t replica = 0;   ///< which copy of weight_box this is
  std::int32_t replicas = 1;

  std::vector<std::uint16_t> weight;
  std::vector<std::uint16_t> stored;
  std::vector<float> master;
  std::vector<float> exp_avg;
  std::vector<float> exp_avg_sq;
};

/// Boxes by `slice`, buffers of the right size filled with zeros. `member` is this rank in `mesh`.
LocalParameter place(const ParameterSpec& spec, const Mesh& mesh, GroupRank member,
                     ChunkRule slice);

/// Start values; the compute copy is rounded from them without communication.
void initialise(LocalParameter& parameter, std::uint64_t seed);

/// This rank's part of the loss: of each element that several ranks hold, the copy whose turn it
/// is counts, so a wrong copy anywhere is seen sooner or later.
std::int64_t local_loss(const LocalParameter& parameter, const Progress& progress);

/// One Adam update of this rank's share; gradients follow from the compute copy.
void update(LocalParameter& parameter, const Progress& progress, std::int64_t loss);

/// Rounds the masters into this rank's share of the compute copy.
void round_own(LocalParameter& parameter);
/// Puts `share`, the elements of `box` row-major, into the compute copy.
void install(LocalParameter& parameter, const Box& box, std::span<const std::uint16_t> share);
/// Collective over dp: everybody's share of the compute copies, of all parameters in one message.
void gather_weights(std::span<LocalParameter> parameters, Communicator& dp);

}  // namespace reprise::sim
