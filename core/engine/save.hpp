#pragma once
// Save: begin takes the snapshot, poll commits. See docs/save.md for the whole flow.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/commit.hpp"
#include "core/engine/image_writer.hpp"
#include "core/engine/leader.hpp"
#include "core/engine/leaf_source.hpp"
#include "core/engine/plan_cache.hpp"
#include "core/engine/retention.hpp"
#include "core/plan/save_plan.hpp"
#include "core/ports/ports.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {

void tell_nothing(Communicator& group, const StateDict& state);
/// A checkpoint is of the step at which its save was begun.
Step step_of_begin(Step begun, Step now);

/// The decisions of a save. Default-constructed ones are right; a mutant swaps one.
struct SavePolicy {
  PlanPolicy plan;
  /// The protocols of a save, each a list of named steps. What each rank runs to commit; what its
  /// leader runs before anything is written, and after all is durable.
  std::vector<ProtocolStep> (*prepare)(Store&, const CommitTarget&) = prepare_protocol;
  std::vector<ProtocolStep> (*commit)(Store&, const CommitTarget&, const CommitContent&,
                                      Part) = commit_part;
  std::vector<ProtocolStep> (*retention)(Store&, const CommitTarget&) = retention_protocol;
  CachePolicy cache;
  /// Where the elements come from that are staged: from the leaves themselves.
  std::unique_ptr<ContentSource> (*source)(Device&, std::vector<LeafOrigin>) = leaf_source;
  StagePolicy stage;
  /// Which step the tracker names, of a job that may have trained on since.
  Step (*names)(Step begun, Step now) = step_of_begin;
  /// Who prepares and commits for all.
  LeaderPolicy lead;
  /// What ranks tell each other of their keys, one by one, before they plan: nothing. Ranks have
  /// different keys, so they would not make the same calls.
  void (*tell_keys)(Communicator&, const StateDict&) = tell_nothing;
};

struct SaveOptions {
  CommitTarget target;
  ImageOptions image;
  SavePolicy policy;
  /// For constant structure: all ranks give one, or none does and every save plans anew.
  PlanCache* cache = nullptr;
};

struct SaveReport {
  std::uint64_t bytes = 0;         ///< written by this rank
  std::uint64_t peak_staging = 0;  ///< bytes
  /// What this rank may hold beside the job's own memory until its part is durable, known before it
  /// is: batches and encoded objects. Not in it: the plan, and the metadata that the leader writes.
  std::uint64_t bound_staging = 0;
  std::uint64_t plan_signature = 0;  ///< of the global plan
  std::uint64_t tensors = 0;         ///< in the whole checkpoint
  std::uint64_t objects = 0;
  Planned planned = Planned::kFresh;
  std::vector<CacheKind> reused;  ///< in the order of cache_kinds()
  /// Why plans were made again, and what of older checkpoints could not be removed; the same on all
  /// ranks.
  std::vector<std::string> log;
};

/// One save in flight, on every rank of `group`. All calls are collective over the group.
class Save {
 public:
  /// Plans, agrees, and copies the owned pieces into staging; when it returns the job may change
  /// its state. Throws the same Error on all ranks if any rank fails; nothing is then visible.
  static Save begin(const Ports& ports, std::shared_ptr<Communicator> group, const StateDict& state,
                    SaveOptions options);
  Save(Save&&) noexcept;
  Save& operator=(Save&&) noexcept;
  ~Save();

  /// True once the checkpoint is committed. On the job's thread, which is at step `now` (nothing:
  /// where the save was begun). Throws as begin does.
  bool poll(std::optional<Step> now = {});
  /// Waits for the background work of all ranks, then votes and commits.
  SaveReport finish(std::optional<Step> now = {});
  /// As SaveReport has it.
  std::uint64_t bound_staging() const;

 private:
  struct State;
  explicit Save(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace reprise
