#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/ports/protocol_step.hpp"
#include "core/seams/cache_seams.hpp"
#include "core/seams/leader_seams.hpp"
#include "core/seams/plan_seams.hpp"
#include "core/seams/stage_seams.hpp"
#include "reprise/device.hpp"
#include "reprise/store.hpp"
#include "reprise/types.hpp"

namespace reprise {

struct CommitTarget;
struct CommitContent;
struct Generation;
struct Kept;
struct LeafOrigin;
class ContentSource;
enum class Role : std::uint8_t;

std::vector<ProtocolStep> prepare_protocol(Store& store, CommitTarget& target);
std::vector<ProtocolStep> commit_part(Store& store, CommitTarget& target,
                                      const CommitContent& content, Role role);
std::vector<ProtocolStep> retention_protocol(Store& store, CommitTarget& target);
std::unique_ptr<ContentSource> leaf_source(Device& device, std::vector<LeafOrigin> origins);

/// Chooses the iterations to remove, oldest first.
using Outdated = std::vector<Step> (*)(const std::vector<Generation>& present, const Kept& kept);
/// Returns the retention protocol, which calls `which` to choose the iterations to remove.
std::vector<ProtocolStep> retention_protocol(Store& store, CommitTarget& target, Outdated which);

struct SaveSeams {
  PlanSeams plan;
  /// The protocols of a save. Each is a list of named steps. The leader runs `prepare` before
  /// anything is written. When everything is durable, each rank runs `commit`; then the leader runs
  /// `retention`.
  std::vector<ProtocolStep> (*prepare)(Store&, CommitTarget&) = prepare_protocol;
  /// `commit` is a std::function because a replacement may need its own state.
  std::function<std::vector<ProtocolStep>(Store&, CommitTarget&, const CommitContent&, Role)>
      commit = commit_part;
  std::vector<ProtocolStep> (*retention)(Store&, CommitTarget&) = retention_protocol;
  CacheSeams cache;
  /// Returns the source from which staging gets the elements.
  std::unique_ptr<ContentSource> (*source)(Device&, std::vector<LeafOrigin>) = leaf_source;
  StageSeams stage;
  /// Chooses the rank that prepares and commits for all ranks.
  LeaderSeams leader;
};

}  // namespace reprise
