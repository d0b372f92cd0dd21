#pragma once
// The one place that knows groups which nobody handed over: those that a process-wide registry
// would hold, as the field's parallel state does. For old callers at the edge; nothing else asks.

#include "sim/job/groups.hpp"

namespace reprise::sim {

/// Which of the registry's groups may stand in for groups that were not given.
struct RegistryUse {
  GroupSet forbidden = {};

  static const RegistryUse kAllowed;    ///< all
  static const RegistryUse kForbidden;  ///< none

  friend bool operator==(const RegistryUse&, const RegistryUse&) = default;
};
inline constexpr RegistryUse RegistryUse::kAllowed{};
inline constexpr RegistryUse RegistryUse::kForbidden{kAllGroups};

/// The global groups of one process: of ranks 0 .. n-1 in the layout's order, whatever ranks a
/// module really stands on.
class GroupRegistry {
 public:
  GroupRegistry(const Layout& layout, GlobalRank self, RegistryUse fallback);

  /// All of them, for a caller that was not given some. GLOBAL_FALLBACK naming caller and groups if
  /// one of those is forbidden; LAYOUT_MISMATCH on a rank that is in no global group.
  CheckpointGroups groups(std::string_view caller, const GroupSet& not_given = kAllGroups) const;

 private:
  Layout layout_;
  GlobalRank self_;
  RegistryUse fallback_;
};

/// A save or a load, by its groups.
struct GroupCall {
  std::string_view caller;  ///< "save"
  const CheckpointGroups& given;
  const GroupRegistry& registry;
  GlobalRank self;
  bool experts = false;  ///< the model has some
};

/// The groups to work with: those given, and for each that the model needs and was not given the
/// registry's. tp_group and pp_group are a pair: USAGE naming both if one of them alone is given.
CheckpointGroups resolve(const GroupCall& call);

}  // namespace reprise::sim
