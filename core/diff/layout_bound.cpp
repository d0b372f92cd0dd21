#include "core/diff/layout_bound.hpp"

#include <algorithm>
#include <array>

namespace reprise {
namespace {

/// True if `key` is `name` or ends in "." followed by `name`.
bool is_last_part(std::string_view key, std::string_view name) {
  if (!key.ends_with(name)) return false;
  return key.size() == name.size() || key[key.size() - name.size() - 1] == '.';
}

bool take(std::string_view& text, std::string_view begin) {
  if (!text.starts_with(begin)) return false;
  text.remove_prefix(begin.size());
  return true;
}

constexpr std::array<std::string_view, 6> kDataParallelArguments = {
    "data_parallel_size",
    "context_parallel_size",
    "num_distributed_optimizer_instances",
    "world_size",
    "rank",
    "local_rank"};

constexpr std::array<std::string_view, 8> kModelParallelArguments = {
    "tensor_model_parallel_size",           "pipeline_model_parallel_size",
    "virtual_pipeline_model_parallel_size", "transformer_pipeline_model_parallel_size",
    "expert_model_parallel_size",           "expert_tensor_parallel_size",
    "pipeline_model_parallel_layout",       "rank_order"};

constexpr std::string_view kRanks = "ranks";  // a module's list of ranks, or a path below it

/// Returns the name of the launch argument at `path`. For example, returns "data_parallel_size" for
/// "['args']['data_parallel_size']" and for "['args']['modules']['vision']['data_parallel_size']".
/// Returns kRanks for a module's list of ranks, and empty text if `path` is not the path of an
/// argument.
std::string_view argument_of(std::string_view path) {
  if (!take(path, "['args']['")) return {};
  if (take(path, "modules']['")) {
    const auto name = path.find("']['");
    if (name == std::string_view::npos) return {};
    path.remove_prefix(name + 4);
    if (path.starts_with("ranks']")) return kRanks;
  } else if (path.starts_with(kRanks)) {
    return {};
  }
  if (!path.ends_with("']")) return {};
  path.remove_suffix(2);
  return path;
}

template <class Names>
bool is_among(std::string_view name, const Names& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool is_layout_bound(std::string_view key) {
  return is_last_part(key, "rng_state") || is_last_part(key, "expert_rng_state") ||
         is_last_part(key, "rerun_state_machine_state") || is_optimizer_group(key);
}

bool is_optimizer_group(std::string_view key) {
  return key.find("optimizer.distributed.dp_group_idx_") != std::string_view::npos;
}

bool is_layout_argument(std::string_view path) {
  const std::string_view argument = argument_of(path);
  return argument == kRanks || is_among(argument, kDataParallelArguments) ||
         is_among(argument, kModelParallelArguments);
}

bool is_data_parallel_argument(std::string_view path) {
  return is_among(argument_of(path), kDataParallelArguments);
}

}  // namespace reprise
