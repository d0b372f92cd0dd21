#pragma once
// Saves a checkpoint: begin() takes the snapshot, poll() commits. docs/architecture.md shows the
// whole flow.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/kept_plan.hpp"
#include "core/save/commit_protocol.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/ports.hpp"
#include "reprise/save.hpp"

namespace reprise {

/// Size of staging for a blocking save. It is large enough to keep both the caller and the
/// background tasks busy, and small enough to fit into the processor cache that they share.
inline constexpr std::uint64_t kBlockingStaging = std::uint64_t{8} << 20U;

/// Holds what a job hands to its saves besides the options.
struct SaveContext {
  /// Place where the job keeps its plan for saves of this structure. Either every rank passes one,
  /// or no rank does. Without it, every save makes a new plan.
  PlanSlot* plan = nullptr;
  /// This rank's share of the writes, if the job has planned that itself; then `plan` is null.
  /// Either every rank passes a share, or no rank does.
  std::optional<std::vector<WriteItem>> writes = {};
  std::vector<Step> damaged = {};  ///< see CommitTarget
  /// The lock that another save in flight holds on the directory of iterations; null if none does.
  std::shared_ptr<StoreLock> root = {};
};

/// One save in flight, on every rank of `group`. All calls are collective over the group.
class Save {
 public:
  /// Plans the save together with the other ranks, and copies what this rank must write into
  /// staging. After the call returns, the job can change its state, unless options.returns is
  /// kWhenQueued: then it can do so after wait_for_staging(). If any rank fails, throws the
  /// same Error on all ranks. In that case nothing becomes visible, and the files written so far
  /// are removed after all ranks have stopped writing.
  static Save begin(const Ports& ports, std::shared_ptr<Communicator> group, const StateDict& state,
                    const SaveOptions& options, SaveContext context = {});
  Save(Save&&) noexcept;
  Save& operator=(Save&&) noexcept;
  ~Save();

  /// Waits until the copies are done, so that the job can change its state. Not collective. If a
  /// copy fails, throws nothing: poll() and finish() then throw on all ranks.
  void wait_for_staging();
  /// True once the checkpoint is committed. Call on the job's thread. If the save fails, throws the
  /// same Error on all ranks.
  bool poll();
  /// Waits for the background work of all ranks, then votes and commits.
  SaveResult finish();
  /// Returns SaveResult::bound_staging.
  std::uint64_t bound_staging() const;
  /// Returns this save's lock on the directory of its iteration, to share with a save that begins
  /// while this one is in flight; null if this rank has no such lock.
  std::shared_ptr<StoreLock> root_lock() const;

  struct State;
  explicit Save(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace reprise
