#pragma once
// The one place that knows groups which nobody handed over: those that a process-wide registry
// would hold, as the field's parallel state does. For old callers at the edge; nothing else asks.

#include "sim/job/groups.hpp"

namespace reprise::sim {

/// Whether the registry may stand in for groups that were not given.
enum class Fallback : std::uint8_t { kAllowed, kForbidden };

/// The global groups of one process: of ranks 0 .. n-1 in the layout's order, whatever ranks a
/// module really stands on.
class GroupRegistry {
 public:
  GroupRegistry(const Layout& layout, GlobalRank self, Fallback fallback);

  /// GLOBAL_FALLBACK naming caller and groups if it is forbidden; LAYOUT_MISMATCH on a rank that
  /// is in no global group.
  CheckpointGroups groups(std::string_view caller) const;

 private:
  Layout layout_;
  GlobalRank self_;
  Fallback fallback_;
};

/// A save or a load, by its groups.
struct GroupCall {
  std::string_view caller;  ///< "save"
  const CheckpointGroups& given;
  const GroupRegistry& registry;
  GlobalRank self;
  bool experts = false;  ///< the model has some
};

/// The groups to work with: those given if all are that the model needs; the registry's if none is.
/// USAGE naming what is missing if some are given and some are not.
CheckpointGroups resolve(const GroupCall& call);

}  // namespace reprise::sim
