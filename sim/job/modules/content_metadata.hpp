#pragma once
// Defines the metadata that a save records about its leaves, like Megatron's content_metadata. It
// names a group; a leaf's copy index counts only the copies within this group. The group belongs to
// the running job: a save removes it before writing the metadata, and a load adds its own group.

#include <optional>
#include <string>
#include <string_view>

#include "reprise/mesh.hpp"
#include "reprise/value.hpp"
#include "sim/job/groups/group_registry.hpp"
#include "sim/job/modules/module_config.hpp"

namespace reprise::sim {

inline constexpr const char* kContentMetadata = "content_metadata";  ///< key in the common state

struct ContentMetadata {
  /// Empty if the modules have different shardings, which are recorded elsewhere.
  std::optional<Sharding> optimizer_sharding;
  std::optional<Group> dp_cp_group;

  friend bool operator==(const ContentMetadata&, const ContentMetadata&) = default;
};

/// A save or a load of one module, for which metadata is built.
struct MetadataCall {
  GroupCaller caller;
  const ModuleConfig& module;      ///< module with its ranks
  const CheckpointGroups& groups;  ///< groups that the call uses
  const GroupRegistry& registry;
  GlobalRank self;
};

/// Returns the metadata of a save: the module's sharding and the groups that the save was given.
ContentMetadata built_metadata(const MetadataCall& call);

/// Returns the entry for the common state, without the group.
Value stripped(const ContentMetadata& metadata);

/// Returns `own` with its sharding replaced by the one in a loaded common state. If the checkpoint
/// records no sharding, returns `own` unchanged.
ContentMetadata put_back(const Value& common, ContentMetadata own);

/// Returns the metadata of a load: the checkpoint's sharding and the group that the load was given.
/// Without a common state, assumes this job's sharding.
ContentMetadata loaded_metadata(const Value* common, const MetadataCall& call);

/// Decides how metadata is built, and which part of it is written.
struct MetadataPolicy {
  ContentMetadata (*built)(const MetadataCall&) = built_metadata;
  Value (*written)(const ContentMetadata&) = stripped;
  ContentMetadata (*loaded)(const Value* common, const MetadataCall&) = loaded_metadata;
};

}  // namespace reprise::sim
