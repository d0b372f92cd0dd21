#pragma once
// Saves a checkpoint: begin() takes the snapshot, poll() commits. docs/architecture.md shows the
// whole flow.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/kept_plan.hpp"
#include "core/save/commit_protocol.hpp"
#include "core/save/image_options.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/ports.hpp"

namespace reprise {

struct SaveSettings {
  CommitTarget target;
  ImageOptions image;
  /// What the job keeps for saves of this structure. Either every rank passes a slot, or no rank
  /// does. Without one, every save makes a new plan.
  PlanSlot* plan = nullptr;
  UnequalCopies unequal = UnequalCopies::kReported;
  /// What this rank writes, if the job has planned that itself; then `plan` is null. Either
  /// every rank passes a share, or no rank does.
  std::optional<std::vector<WriteItem>> writes = {};
};

struct SaveReport {
  std::uint64_t bytes = 0;          ///< bytes that this rank wrote
  std::uint64_t peak_staging = 0;   ///< peak use of staging in bytes
  bool waited_for_staging = false;  ///< true if staging was full while the snapshot was taken
  /// Upper limit on the memory that this rank uses, besides the job's own memory, until its part is
  /// durable. Covers batches and encoded objects, but neither the plan nor the metadata that the
  /// leader writes. Known before the save begins.
  std::uint64_t bound_staging = 0;
  /// The same limit for a rank that holds no tensor data except single-element tensors. It is the
  /// sum of a constant and the size of the objects and single elements that the rank writes.
  std::uint64_t bound_empty = 0;
  std::uint64_t plan_signature = 0;  ///< signature of the global plan
  std::uint64_t tensors = 0;         ///< tensors in the whole checkpoint
  std::uint64_t objects = 0;
  Planned planned = Planned::kFresh;
  std::vector<UnequalCopy> unequal;  ///< the same on all ranks
  /// Reasons for planning again, and a line for each old checkpoint that could not be removed; the
  /// same on all ranks.
  std::vector<std::string> log;
};

/// One save in flight, on every rank of `group`. All calls are collective over the group.
class Save {
 public:
  /// Plans the save together with the other ranks, and copies what this rank must write into
  /// staging. After the call returns, the job can change its state, unless options.image.returns is
  /// kWhenQueued: then it can do so after wait_for_staging(). If any rank fails, throws the
  /// same Error on all ranks. In that case nothing becomes visible, and the files written so far
  /// are removed after all ranks have stopped writing.
  static Save begin(const Ports& ports, std::shared_ptr<Communicator> group, const StateDict& state,
                    SaveSettings options);
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
  SaveReport finish();
  /// Returns the value of SaveReport::bound_staging.
  std::uint64_t bound_staging() const;
  /// Returns this save's lock on `root` of `store`, to share with a save that begins while this one
  /// is in flight; null if this save has no such lock.
  std::shared_ptr<StoreLock> root_lock(const Store& store, const std::string& root) const;

  struct State;
  explicit Save(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace reprise
