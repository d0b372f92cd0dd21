#pragma once
// The only code that knows groups that no caller passed: those of a process-wide registry, like
// Megatron's parallel state. For old callers at the edge; nothing else uses it.

#include "sim/job/groups/groups.hpp"

namespace reprise::sim {

/// Selects the groups of the registry that may replace groups that were not given.
struct RegistryUse {
  GroupSet forbidden = {};

  static const RegistryUse kAllowed;    ///< all
  static const RegistryUse kForbidden;  ///< none

  friend bool operator==(const RegistryUse&, const RegistryUse&) = default;
};
inline constexpr RegistryUse RegistryUse::kAllowed{};
inline constexpr RegistryUse RegistryUse::kForbidden{kAllGroups};

/// The global groups of one process: ranks 0 .. n-1 in the layout's order, even if a module uses
/// other ranks.
class GroupRegistry {
 public:
  GroupRegistry(const Layout& layout, GlobalRank self, RegistryUse fallback);

  /// Returns all groups, for a caller that was not given some. GLOBAL_FALLBACK with caller and
  /// groups if one of those is forbidden; LAYOUT_MISMATCH on a rank that is in no global group.
  CheckpointGroups groups(std::string_view caller, const GroupSet& not_given = kAllGroups) const;

 private:
  Layout layout_;
  GlobalRank self_;
  RegistryUse fallback_;
};

/// A save or a load with its groups.
struct GroupCall {
  std::string_view caller;  ///< "save"
  const CheckpointGroups& given;
  const GroupRegistry& registry;
  GlobalRank self;
  bool experts = false;  ///< true if the model has experts
};

/// Returns the given groups, and the registry's for each group that the model needs and was not
/// given. tp_group and pp_group are a pair: USAGE with both names if only one of them is given.
CheckpointGroups resolve(const GroupCall& call);

}  // namespace reprise::sim
