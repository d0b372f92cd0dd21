#pragma once
// Lists the decisions that a job makes about its checkpoints. A default-constructed policy decides
// correctly; a mutant replaces some of its functions.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/geometry/placement.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/fabric.hpp"
#include "sim/job/data/step_agreement.hpp"
#include "sim/job/groups/group_registry.hpp"
#include "sim/job/modules/content_metadata.hpp"
#include "sim/job/modules/module.hpp"
#include "sim/job/modules/module_state.hpp"
#include "sim/job/optimizer/family.hpp"
#include "sim/job/rerun/rerun_policy.hpp"

namespace reprise::sim {

// --- from loaded state to the next step --------------------------------------------------------

/// Modules whose loaded state is refreshed. Must outlive the steps of the refresh.
struct Loaded {
  std::span<Module> modules;  ///< modules of which this rank has a part
  Communicator& world;

  void for_each_family(const std::function<void(Family&)>& visit) const {
    for (auto& module : modules) {
      for (auto& family : module.families) visit(family);
    }
  }
};

struct RefreshStep {
  std::string_view name;
  std::function<void()> run;
};

/// Returns the steps from the loaded state to the state that the next forward pass uses:
///
///   convert          if slots were stored in another sharding, splits them into this job's shares
///   check_masters    compares bf16(master) with the stored weight on every rank; throws
///                    STALE_DERIVED on all ranks if a weight differs on any rank
///   install_own      copies this rank's share into the compute copy
///   gather           gathers the other shares, over the group that shares the optimizer
std::vector<RefreshStep> refresh_protocol(const Loaded& loaded);

/// Returns the state unchanged. A correct job leaves nothing out.
StateDict whole_state(StateDict state);

// --- description of a tensor for a checkpoint --------------------------------------------------

/// A rank's part of a tensor, and all inputs that determine that part.
struct Holding {
  const ParameterSpec& spec;
  const ModelSpec& model;
  const Layout& layout;
  const Group& job;                         ///< all ranks of the module, in the layout's order
  const std::shared_ptr<const Mesh>& mesh;  ///< mesh of the ranks that hold parts or copies
  GroupRank member;                         ///< this rank's index in the mesh
  const LocalTensor& tensor;                ///< the rank's part under model parallelism
  std::span<const Box> boxes;               ///< boxes of the local array: all of it, or a share
  Placement placement;                      ///< splits by model parallelism and optimizer shares
  bool flat = false;                        ///< true if the share is a flattened range
  std::int32_t replica = 0;                 ///< index of this rank's copy of the boxes
  std::span<const Share> shares;            ///< shares of all ranks; empty if there are no shares
  GroupRank own;                            ///< this rank's index in `shares`
  std::int32_t ranks_per_node = 0;          ///< 0 if all ranks are on one node
};

/// Describes a leaf without its bytes. The pieces refer to a buffer that holds the boxes one after
/// another.
struct Description {
  std::string key;
  Dims shape;
  std::vector<Piece> pieces;
  std::int32_t replica = 0;
  std::optional<Placed> placed;
};

/// Returns the parameter's own key, global shape and boxes. If mesh and placement alone determine
/// the boxes, adds mesh and placement.
Description describe(const Holding& holding);

/// Returns the copy index of this member under the placement; 0 is the main copy.
std::int32_t replica_of(const Placement& placement, const Mesh& mesh, GroupRank member);

// --- random states -------------------------------------------------------------------------------

struct RandomStates {
  /// Random streams of this rank, or of all ranks of its dp x cp group if their streams differ.
  std::span<const HostRng> host;
  const HostRng* expert = nullptr;  ///< null if the model has no experts
  const CheckpointGroups& groups;
  const ContentMetadata& metadata;
  GlobalRank self;
};

/// Returns `rng_state` in a grid over (pp, tp), and `expert_rng_state` in a grid over (pp, ep,
/// etp). The groups determine the sizes of the grids and this rank's coordinates. The replica index
/// of `rng_state` is this rank's index in the metadata's dp_cp_group; that of `expert_rng_state` is
/// this rank's index in the experts' DP group. Keys begin with the groups' prefix.
std::vector<ObjectLeaf> random_leaves(const RandomStates& states);

// --- modules -------------------------------------------------------------------------------------

/// A layer that builds its own part of a checkpoint.
struct LeafLayer {
  std::string_view key;           ///< key of one of the layer's parameters
  const CheckpointGroups& given;  ///< groups passed to the layer
  const GroupRegistry& registry;
};
CheckpointGroups groups_it_is_given(const LeafLayer& layer);

/// Returns the schedule to use after a load: `stored`, including its sample count.
Schedule stored_schedule(const Schedule& own, const Schedule& stored);

/// Returns the sharding in which a load reads the optimizer state. A correct job uses the
/// checkpoint's sharding.
Sharding sharding_of_checkpoint(const ModuleConfig& own, const ModuleConfig& stored);

/// Inputs of same_streams(): a module's layout in the checkpoint and its layout in this job. Each
/// layout determines how the module's random states are arranged. If `of_experts` is true, only the
/// random states of the module's experts are compared.
struct StreamGrids {
  const Layout& stored;
  const Layout& own;
  bool of_experts = false;
  bool by_dp = false;  ///< true if streams differ by rank of dp x cp
};
/// True if the two layouts arrange the random states in the same way. Only then can each rank find
/// its own stream in the checkpoint.
bool same_streams(const StreamGrids& grids);

/// Decides which keys, copies and objects of a checkpoint belong to a module.
struct ModulePolicy {
  std::string (*prefix)(std::string_view name) = module_prefix;
  std::int32_t (*copy)(const CheckpointGroups&, GlobalRank) = copy_of_module;
  std::vector<ObjectLeaf> (*extracted)(Dict& entry, const ChainPlace&) = extract_entry;
  Value (*restored)(Value entry, std::span<const ObjectLeaf>) = restore_entry;
  CheckpointGroups (*leaf_layer)(const LeafLayer&) = groups_it_is_given;
  Sharding (*sharding)(const ModuleConfig&, const ModuleConfig&) = sharding_of_checkpoint;
  bool (*streams)(const StreamGrids&) = same_streams;
  std::optional<KeyForm> (*form)(const Catalog&) = stored_form;
  std::string (*owner)(std::string_view key, std::span<const ModuleConfig> stored) = owner_of;
};

/// Converts an optimizer's settings for a save and a load.
struct SettingsPolicy {
  std::vector<GroupSettings> (*saved)(std::vector<GroupSettings>) = without_params;
  std::vector<GroupSettings> (*matched)(const GroupMatch&) = matched_by_identifier;
  Schedule (*schedule)(const Schedule& own, const Schedule& stored) = stored_schedule;
};

// --- training -----------------------------------------------------------------------------------

/// Several stages can hold the same parameter. Returns the ranks that sum their gradients for it. A
/// correct job includes all holders.
Group all_holders(const Group& holders);

/// Returns the seed of a member's start values. A correct job gives all members the same seed.
std::uint64_t common_seed(std::uint64_t seed, const Mesh& mesh, GroupRank member);

// --- memory --------------------------------------------------------------------------------------

/// Storage whose content was moved to new memory. The old bytes stay readable, as on a device whose
/// allocator keeps freed blocks.
struct Moved {
  std::byte* now = nullptr;
  std::size_t bytes = 0;
  ArrayMemory old;
};

/// Returns the address from which to save a leaf. A correct job uses the leaf's current address.
std::byte* where_it_is(std::byte* data, std::span<const Moved> moved);

struct JobPolicy {
  /// Rule by which a placement splits dimensions. The plan of a save must use the same rule.
  ChunkRule slice = ceil_chunk;
  /// Returns the rules that map a key to its placement in a checkpoint.
  const PartitionRules& (*names)() = partition_rules;
  std::int32_t (*replica)(const Placement&, const Mesh&, GroupRank) = replica_of;
  Description (*described_save)(const Holding&) = describe;
  Description (*described_load)(const Holding&) = describe;
  decltype(ShareRule::layout) buckets = bucket_layout;
  std::vector<ObjectLeaf> (*random)(const RandomStates&) = random_leaves;
  Group (*sync)(const Group&) = all_holders;
  std::uint64_t (*start)(std::uint64_t, const Mesh&, GroupRank) = common_seed;
  /// These functions select parts of the whole state: `saved` selects what a save writes,
  /// `requested` what a load requests.
  StateDict (*saved)(StateDict) = whole_state;
  StateDict (*requested)(StateDict) = whole_state;
  /// These functions choose the groups of a save and of a load, and check that all ranks agree on
  /// them.
  CheckpointGroups (*save_groups)(const GroupCall&) = resolve;
  CheckpointGroups (*load_groups)(const GroupCall&) = resolve;
  void (*groups)(std::span<const GroupIdeas>) = judge_groups;
  MetadataPolicy metadata = {};
  std::byte* (*storage)(std::byte* data, std::span<const Moved> moved) = where_it_is;
  std::vector<RefreshStep> (*refresh)(const Loaded&) = refresh_protocol;
  ModulePolicy module = {};
  SettingsPolicy settings = {};
  StepPolicy step = {};
  RerunPolicy rerun = {};
};

}  // namespace reprise::sim
