#pragma once
// Holds the groups of one process, like Megatron's parallel state. Only callers that pass no groups
// to a save or a load use these groups.

#include <cstdint>
#include <string_view>

#include "sim/job/groups/groups.hpp"

namespace reprise::sim {

/// Selects which missing groups may be taken from the registry.
struct RegistryUse {
  GroupSet forbidden = {};

  static const RegistryUse kAllowed;    ///< all groups
  static const RegistryUse kForbidden;  ///< no groups

  friend bool operator==(const RegistryUse&, const RegistryUse&) = default;
};
inline constexpr RegistryUse RegistryUse::kAllowed{};
inline constexpr RegistryUse RegistryUse::kForbidden{kAllGroups};
/// Returns "allowed", "forbidden", or "partly forbidden" if only some groups are forbidden.
std::string_view name_of(const RegistryUse& use);

/// Operations of a job that need groups. An error message begins with the operation's name.
enum class GroupCaller : std::uint8_t { kSave, kLoad, kJudge };
/// Returns "save", "load" or "judge".
std::string_view name_of(GroupCaller caller);

/// The global groups of one process. They consist of ranks 0 .. n-1 in the layout's order, even if
/// a module uses other ranks.
class GroupRegistry {
 public:
  GroupRegistry(const Layout& layout, GlobalRank self, RegistryUse fallback);

  /// Returns all groups. `caller` is the name of the calling operation, and `not_given` are the
  /// groups that were not passed to it. Throws GLOBAL_FALLBACK, with caller and groups, if one of
  /// `not_given` is forbidden, and LAYOUT_MISMATCH on a rank that is in no global group.
  CheckpointGroups groups(std::string_view caller, const GroupSet& not_given = kAllGroups) const;

 private:
  Layout layout_;
  GlobalRank self_;
  RegistryUse fallback_;
};

/// A call of a save or a load, with the groups that were passed to it.
struct GroupCall {
  GroupCaller caller;
  const CheckpointGroups& given;
  const GroupRegistry& registry;
  GlobalRank self;
  bool experts = false;  ///< true if the model has experts
};

/// Returns the groups that were passed. If the model needs other groups, too, takes those from the
/// registry. tp_group and pp_group must be passed together: throws USAGE, with both names, if only
/// one is.
CheckpointGroups resolve(const GroupCall& call);

}  // namespace reprise::sim
