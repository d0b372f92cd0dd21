#include "core/engine/layout_bound.hpp"

namespace reprise {
namespace {

/// True if `key` is `name`, or ends in it after a dot.
bool is_last_part(std::string_view key, std::string_view name) {
  if (!key.ends_with(name)) return false;
  return key.size() == name.size() || key[key.size() - name.size() - 1] == '.';
}

}  // namespace

bool is_layout_bound(std::string_view key) {
  return is_last_part(key, "rng_state") || is_last_part(key, "rerun_state_machine_state") ||
         key.find("optimizer.distributed.dp_group_idx_") != std::string_view::npos;
}

}  // namespace reprise
