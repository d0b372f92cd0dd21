#pragma once
// What one rank holds of one parameter for the forward pass: its bf16 compute copy.
//
//   fc1 [54, 24], tp2 dp2, rank tp 0 dp 1:
//     weight  bf16   rows  0..27   the compute copy; dp ranks hold the same
//   and in the optimizer (see optimizer_shard.hpp), under fully_reshardable:
//     master  fp32   rows 14..27   this rank's share, with exp_avg and exp_avg_sq
//     stored  bf16   rows 14..27   where a load puts this rank's share of the weights

#include <cstdint>
#include <memory>
#include <vector>

#include "core/geometry/mesh.hpp"
#include "sim/job/content.hpp"
#include "sim/job/local_tensor.hpp"
#include "sim/job/model.hpp"
#include "sim/job/progress.hpp"

namespace reprise::sim {

/// Which of several equal ones a rank holds.
struct Copy {
  std::int32_t own = 0;
  std::int32_t of = 1;

  /// Whether this copy's turn it is at an element, so a wrong one is seen sooner or later.
  bool counts(std::int64_t index, const Progress& at) const {
    return (index + at.iteration) % of == own;
  }
};

struct LocalParameter {
  ParameterSpec spec;
  std::shared_ptr<const Mesh> mesh;  ///< the ranks of the stages that hold it
  GroupRank member;                  ///< this rank, in it
  LocalTensor tensor;
  std::vector<Piece> pieces;  ///< of `weight`
  Copy copy;                  ///< of its part
  Copy share_copy;            ///< of this rank's share of the optimizer's state
  bool in_sync = true;        ///< gradients are summed with the other stages that hold it

  std::vector<std::uint16_t> weight;  ///< the local array, row-major
};

/// Consecutive elements along the last dimension, on both sides of two equal lists of pieces.
/// Calls visit(global index, offset in a, offset in b, count); `shape` is the global tensor's.
template <class Visit>
void for_each_run(const Dims& shape, const std::vector<Piece>& a, const std::vector<Piece>& b,
                  const Visit& visit) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Box& box = a[i].box;
    const std::int64_t run = box.rank() == 0 ? 1 : box.extent[box.rank() - 1];
    for (std::int64_t done = 0; done < box.elements(); done += run) {
      Dims at = index_at(done, box.extent);
      for (std::size_t d = 0; d < at.size(); ++d) at[d] += box.offset[d];
      visit(linear_index(at, shape), static_cast<std::size_t>(local_offset(a[i], at)),
            static_cast<std::size_t>(local_offset(b[i], at)), run);
    }
  }
}

/// Start values of the compute copy.
void initialise(LocalParameter& parameter, std::uint64_t seed);

/// This rank's part of the loss, each element counted once over all ranks.
std::int64_t local_loss(const LocalParameter& parameter, const Progress& progress);

}  // namespace reprise::sim
