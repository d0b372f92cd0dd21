#include "core/engine/layout_bound.hpp"

#include <algorithm>
#include <array>

namespace reprise {
namespace {

/// True if `key` is `name`, or ends in it after a dot.
bool is_last_part(std::string_view key, std::string_view name) {
  if (!key.ends_with(name)) return false;
  return key.size() == name.size() || key[key.size() - name.size() - 1] == '.';
}

bool take(std::string_view& text, std::string_view begin) {
  if (!text.starts_with(begin)) return false;
  text.remove_prefix(begin.size());
  return true;
}

constexpr std::array<std::string_view, 14> kLayoutArguments = {
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "virtual_pipeline_model_parallel_size",
    "transformer_pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
    "data_parallel_size",
    "num_distributed_optimizer_instances",
    "pipeline_model_parallel_layout",
    "rank_order",
    "world_size",
    "rank",
    "local_rank"};

}  // namespace

bool is_layout_bound(std::string_view key) {
  return is_last_part(key, "rng_state") || is_last_part(key, "expert_rng_state") ||
         is_last_part(key, "rerun_state_machine_state") ||
         key.find("optimizer.distributed.dp_group_idx_") != std::string_view::npos;
}

bool is_layout_argument(std::string_view path) {
  if (!take(path, "['args']['")) return false;
  if (take(path, "modules']['")) {
    const auto name = path.find("']['");
    if (name == std::string_view::npos) return false;
    path.remove_prefix(name + 4);
    if (path.starts_with("ranks']")) return true;
  }
  if (!path.ends_with("']")) return false;
  path.remove_suffix(2);
  return std::find(kLayoutArguments.begin(), kLayoutArguments.end(), path) !=
         kLayoutArguments.end();
}

}  // namespace reprise
