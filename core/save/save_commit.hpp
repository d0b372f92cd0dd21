#pragma once
// The end of a save: one rank makes the checkpoint visible for all, and removes old ones.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"
#include "core/save/commit.hpp"
#include "core/seams/save_seams.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/fabric.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// Returns the metadata and the list of files of a checkpoint, without common state: what the plan
/// contains stands where the ranks' votes say (take_votes in rank_write.hpp). Throws
/// COLLECTIVE_MISMATCH if a rank did not write exactly what the plan assigns to it.
CommitContent content_of(const GlobalPlan& plan, const CommitTarget& target,
                         const std::vector<Bytes>& votes);

/// A target from its claim to the commit. Every call is collective, and a failure on one rank is
/// thrown on all.
class SaveCommit {
 public:
  SaveCommit(const Ports& ports, std::shared_ptr<Communicator> group, const SaveSeams& seams,
             CommitTarget target);

  const CommitTarget& target() const { return target_; }

  /// Claims the target and creates the directory to write into. The leader keeps the common state.
  void prepare(const StateDict& state);
  /// Makes the checkpoint visible. `manifest`: with the digests of its files. Returns messages for
  /// the operator, the same on all ranks.
  std::vector<std::string> commit(const GlobalPlan& plan, const std::vector<Bytes>& votes,
                                  bool manifest);
  /// Removes old checkpoints; the new one is committed even if this fails. Returns messages
  /// likewise.
  std::vector<std::string> retain();
  /// Gives the claim up after a commit; not collective.
  void release() { target_.claim = {}; }
  /// Releases the target and the space of a failed save, once no rank writes any more; not
  /// collective. Never throws.
  void give_up();

 private:
  Part part() const;
  Bytes take_notes();

  Ports ports_;
  std::shared_ptr<Communicator> group_;
  SaveSeams seams_;
  CommitTarget target_;
  std::optional<Dict> common_;  ///< the leader's
};

}  // namespace reprise
