#include "sim/job/group_registry.hpp"

#include "core/base/error.hpp"
#include "core/base/print.hpp"

namespace reprise::sim {

GroupRegistry::GroupRegistry(const Layout& layout, GlobalRank self, Fallback fallback)
    : layout_(layout), self_(self), fallback_(fallback) {}

CheckpointGroups GroupRegistry::groups(std::string_view caller) const {
  std::vector<std::string_view> names;
  for (const auto& name : kGroupNames) names.push_back(name.argument);
  const std::string what = std::string(caller) + " was given no process groups";
  if (fallback_ == Fallback::kForbidden) {
    throw Error(Code::kGlobalFallback,
                what + ", and taking global ones is forbidden: hand over " + join(names, ", "),
                {.rank = self_});
  }
  const Mesh dense = dense_mesh(layout_);
  if (!dense.members().rank_of(self_)) {
    throw Error(Code::kLayoutMismatch,
                what + ", and the global ones are of ranks 0 .. " +
                    std::to_string(dense.size() - 1) + ": this rank is in none of them",
                {.rank = self_});
  }
  return groups_of(dense, expert_mesh(layout_), self_);
}

CheckpointGroups resolve(const GroupCall& call) {
  std::vector<std::string_view> here;
  std::vector<std::string_view> missing;
  for (const auto& name : kGroupNames) {
    if ((call.given.*name.group).has_value()) {
      here.push_back(name.argument);
    } else if (call.experts || !name.of_experts) {
      missing.push_back(name.argument);
    }
  }
  if (missing.empty()) return call.given;
  if (here.empty()) {
    CheckpointGroups groups = call.registry.groups(call.caller);
    groups.rng_prefix = call.given.rng_prefix;
    return groups;
  }
  throw Error(Code::kUsage,
              std::string(call.caller) + " was given " + join(here, ", ") + " and not " +
                  join(missing, ", ") + ": hand over all of a module's groups, or none of them",
              {.rank = call.self});
}

}  // namespace reprise::sim
