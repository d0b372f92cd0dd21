#pragma once
// Save: begin takes the snapshot, poll commits. See docs/save.md for the whole flow.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/commit.hpp"
#include "core/engine/image_options.hpp"
#include "core/engine/plan_cache.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/ports.hpp"

namespace reprise {

struct SaveSettings {
  CommitTarget target;
  ImageOptions image;
  /// For constant structure: all ranks give one, or none does and every save plans anew.
  PlanCache* cache = nullptr;
};

struct SaveReport {
  std::uint64_t bytes = 0;         ///< written by this rank
  std::uint64_t peak_staging = 0;  ///< bytes
  /// What this rank may hold beside the job's own memory until its part is durable, known before it
  /// is: batches and encoded objects. Not in it: the plan, and the metadata that the leader writes.
  std::uint64_t bound_staging = 0;
  /// The same of a rank that holds no part of any tensor of more than one element: a constant, and
  /// what it has to write of objects and single elements.
  std::uint64_t bound_empty = 0;
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
  /// its state. Throws the same Error on all ranks if any rank fails; nothing is then visible, and
  /// what was written is removed when no rank writes any more.
  static Save begin(const Ports& ports, std::shared_ptr<Communicator> group, const StateDict& state,
                    SaveSettings options);
  Save(Save&&) noexcept;
  Save& operator=(Save&&) noexcept;
  ~Save();

  /// True once the checkpoint is committed. On the job's thread. Throws as begin does.
  bool poll();
  /// Waits for the background work of all ranks, then votes and commits.
  SaveReport finish();
  /// As SaveReport has it.
  std::uint64_t bound_staging() const;
  /// Returns the lock on that root of the store that this save has, for one that is begun beside
  /// it; nothing where it has none.
  std::shared_ptr<StoreLock> root_lock(const Store& store, const std::string& root) const;

  struct State;
  explicit Save(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

}  // namespace reprise
