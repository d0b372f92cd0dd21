#include "sim/job/groups/group_registry.hpp"

#include "core/base/codes.hpp"
#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

/// Throws if only one group of the pair (tp, pp) is given. Megatron would continue as if the other
/// group consisted of this rank alone.
void require_pair(const GroupCall& call) {
  if (call.given.tp.has_value() == call.given.pp.has_value()) return;
  const bool tp = call.given.tp.has_value();
  throw Error(Code::kUsage,
              std::string(name_of(call.caller)) + " was given " + (tp ? "tp_group" : "pp_group") +
                  " and not " + (tp ? "pp_group" : "tp_group") +
                  ": the two are a pair; hand over both of a module's, or neither",
              {.rank = call.self});
}

/// Returns the groups that the model needs but the caller did not pass.
GroupSet missing_of(const GroupCall& call) {
  GroupSet missing;
  for (std::size_t g = 0; g < kGroupNames.size(); ++g) {
    const GroupName& name = kGroupNames.at(g);
    const bool needed = call.experts || !name.of_experts;
    missing.set(g, needed && !(call.given.*name.group).has_value());
  }
  return missing;
}

}  // namespace

std::string_view name_of(const RegistryUse& use) {
  if (use == RegistryUse::kAllowed) return "allowed";
  return use == RegistryUse::kForbidden ? "forbidden" : "partly forbidden";
}

std::string_view name_of(GroupCaller caller) {
  switch (caller) {
    case GroupCaller::kSave:
      return "save";
    case GroupCaller::kLoad:
      return "load";
    case GroupCaller::kJudge:
      return "judge";
  }
  return "";
}

GroupRegistry::GroupRegistry(const Layout& layout, GlobalRank self, RegistryUse fallback)
    : layout_(layout), self_(self), fallback_(fallback) {}

CheckpointGroups GroupRegistry::groups(std::string_view caller, const GroupSet& not_given) const {
  const std::string what =
      std::string(caller) + " was given no " + join(arguments_of(not_given), ", ");
  const GroupSet refused = not_given & fallback_.forbidden;
  if (refused.any()) {
    const std::string names = join(arguments_of(refused), ", ");
    throw Error(passed_on::kGlobalFallback,
                what + ", and taking the global " + names + " is forbidden: hand over " + names,
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
  require_pair(call);
  const GroupSet missing = missing_of(call);
  if (missing.none()) return call.given;
  const CheckpointGroups global = call.registry.groups(name_of(call.caller), missing);
  CheckpointGroups groups = call.given;
  for (std::size_t g = 0; g < kGroupNames.size(); ++g) {
    const auto group = kGroupNames.at(g).group;
    if (missing.test(g)) groups.*group = global.*group;
  }
  return groups;
}

}  // namespace reprise::sim
