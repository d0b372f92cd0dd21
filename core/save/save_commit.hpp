#pragma once
// Ends a save: one rank makes the checkpoint visible for all ranks and removes old checkpoints.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/save_plan.hpp"
#include "core/save/commit_protocol.hpp"
#include "core/seams/save_seams.hpp"
#include "core/state/state_dict.hpp"
#include "reprise/fabric.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// Returns the metadata and the list of files of a checkpoint, without common state. The plan says
/// what the checkpoint contains; the ranks' votes (take_votes in rank_write.hpp) say where it is
/// stored. Throws COLLECTIVE_MISMATCH if a rank did not write exactly what the plan assigns to it.
CommitContent content_of(const GlobalPlan& plan, const CommitTarget& target,
                         const std::vector<Bytes>& votes);

/// Performs the commit of one save, from the claim on the target to retention. Unless noted
/// otherwise, calls are collective and a failure on one rank is thrown on all ranks.
class SaveCommit {
 public:
  SaveCommit(const Ports& ports, std::shared_ptr<Communicator> group, const SaveSeams& seams,
             CommitTarget target);

  const CommitTarget& target() const { return target_; }

  /// Claims the target and creates the directory to write into. The leader keeps the common state
  /// for the commit.
  void prepare(const StateDict& state);
  /// True if the commit or retention may remove an older checkpoint. Known after prepare(); the
  /// same on all ranks.
  bool older_goes() const { return older_goes_; }
  /// Makes the checkpoint visible. If `manifest` is true, also writes integrity.json with the
  /// digests of the files. Returns messages for the operator, the same on all ranks.
  std::vector<std::string> commit(const GlobalPlan& plan, const std::vector<Bytes>& votes,
                                  bool manifest);
  /// Removes old checkpoints. The new one stays committed even if this fails. Returns messages for
  /// the operator, the same on all ranks.
  std::vector<std::string> retain();
  /// Releases the claim after a commit; not collective.
  void release() { target_.claim = {}; }
  /// Releases the failed save's claim on the target and removes its files if possible. Call it only
  /// after every rank has stopped writing. Not collective. Never throws.
  void abandon();

 private:
  Role role() const;
  Bytes take_notes();

  Ports ports_;
  std::shared_ptr<Communicator> group_;
  SaveSeams seams_;
  CommitTarget target_;
  bool older_goes_ = false;
  Value common_;  ///< common state; only the leader has it
};

}  // namespace reprise
