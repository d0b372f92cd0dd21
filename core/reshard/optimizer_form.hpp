#pragma once
// Shows a checkpoint of Megatron-Core as if its distributed optimizer had saved its state in
// another form, so that reshard() writes that. The elements are those of the source, bit for bit.
//
//   dp_reshardable             optimizer.distributed.dp_group_idx_0.gbuf_idx_0....exp_avg   buckets
//   fully_sharded_model_space  optimizer.state.exp_avg.<weight>    flattened ranges of parameters
//   fully_reshardable          optimizer.state.exp_avg.<weight>    one tensor for each weight

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/plan/layout_boxes.hpp"
#include "core/reshard/reshard.hpp"
#include "reprise/device.hpp"

namespace reprise {

inline constexpr std::string_view kFullyReshardable = "fully_reshardable";

/// Throws USAGE for a form that does not exist, and UNSUPPORTED, with the reason and what to do,
/// for one that can't be written.
void require_writable_form(const std::string& form);

/// What the layout of the job that saved was, by its arguments in the checkpoint.
struct SavingLayout {
  LayoutParts parts;
  bool virtual_stages = false;
};

struct OptimizerView {
  Metadata metadata;             ///< for Checkpoint::with()
  Value common;                  ///< the common state that goes with it
  std::string from;              ///< the form in the checkpoint
  std::uint64_t parameters = 0;  ///< tensors of parameters and of their moments
  /// Keys of weights for which the checkpoint has no state in any bucket, such as frozen ones.
  std::vector<std::string> without_state;
};

/// Returns the checkpoint in the form fully_reshardable. Reads the weights and parameters if there
/// are buckets. Throws UNSUPPORTED, with the reason and what to do, if its form can't be changed.
OptimizerView as_fully_reshardable(Checkpoint& checkpoint, const SavingLayout& layout,
                                   Device& device);

/// Returns the rule by which parameters and moments have the boxes of their weights, as Megatron
/// writes them, and not the ranges in which another form had them. The boxes of a tensor are
/// written by the writers in turn. `catalog` must outlive the rule.
BoxRule boxes_of_weights(const Catalog& catalog, std::int32_t writers);

}  // namespace reprise
