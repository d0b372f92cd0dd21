#pragma once
// What a save says of how its leaves are made, as the field's content_metadata. The making takes
// the group over which copies are counted, at a save and at a load alike, from here and from
// nowhere else; a group is of the running job, so it is stripped from what is written and put back
// on load.

#include <optional>
#include <string>
#include <string_view>

#include "reprise/mesh.hpp"
#include "reprise/value.hpp"
#include "sim/job/group_registry.hpp"
#include "sim/job/module_config.hpp"

namespace reprise::sim {

inline constexpr const char* kContentMetadata = "content_metadata";  ///< key in the common state

struct ContentMetadata {
  /// Nothing: modules have different ones, and are not told here.
  std::optional<Sharding> optimizer_sharding;
  std::optional<Group> dp_cp_group;

  friend bool operator==(const ContentMetadata&, const ContentMetadata&) = default;
};

/// A save or a load of a module, whose metadata are made.
struct MetadataCall {
  std::string_view caller;         ///< "save"
  const ModuleConfig& module;      ///< with its ranks
  const CheckpointGroups& groups;  ///< that the call goes by
  const GroupRegistry& registry;
  GlobalRank self;
};

/// Of a save: the module's sharding, and the group that the save was given.
ContentMetadata built_metadata(const MetadataCall& call);

/// The entry of the common state: without the group.
Value stripped(const ContentMetadata& metadata);

/// That of a loaded common state, with this job's group; the sharding stays that of `own` where the
/// checkpoint says nothing.
ContentMetadata put_back(const Value& common, ContentMetadata own);

/// Of a load: what the checkpoint says, with the group that the load was given. Without a common
/// state the checkpoint is taken to be of this job's sharding.
ContentMetadata loaded_metadata(const Value* common, const MetadataCall& call);

/// How metadata come to be, and what of them is written.
struct MetadataPolicy {
  ContentMetadata (*built)(const MetadataCall&) = built_metadata;
  Value (*written)(const ContentMetadata&) = stripped;
  ContentMetadata (*loaded)(const Value* common, const MetadataCall&) = loaded_metadata;
};

}  // namespace reprise::sim
