#pragma once
// Writes and publishes a checkpoint in a sequence of named steps, which a single loop runs.
//
//   iter_0000010.saving-<token>/   payload files, synced by their writers
//     payload              checks that every file has the length that its writer reported
//     common_state         common.pt
//     metadata             .metadata
//     backend_info         metadata.json
//     manifest             integrity.json (if requested)
//     sync_directory
//     read_back            reads the small files back, and checks the lengths of all files again
//     swap_in              publishes as iter_0000010, replacing any old checkpoint of that name
//     sync_parent          after this step, the checkpoint exists
//     confirm              reads the new name again instead of trusting the store's success
//     tracker              latest_checkpointed_iteration.txt, written to a side file and published
//     remove_replaced      removes the old checkpoint; a failure here does not fail the save
//
// If a step fails between swap_in and confirm, the old checkpoint is moved back. If a store cannot
// replace a directory in one step, the old directory is first moved to
// iter_0000010.replaced-<token>; `locate` finds it there if a crash happens between the two
// renames. Every directory that is moved away gets a mark. A Claim ensures that only one writer at
// a time runs these steps.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/set_aside.hpp"
#include "core/format/integrity.hpp"
#include "core/format/metadata.hpp"
#include "core/format/step_names.hpp"
#include "core/save/phases.hpp"
#include "reprise/store.hpp"
#include "reprise/types.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// A writer's claim on its target. It lasts from prepare until the checkpoint is committed or the
/// writer gives up. The leader holds the locks. If the leader's process ends, its locks are
/// released.
struct Claim {
  /// A token that is part of the name of every file and directory that this writer creates next to
  /// the target. All ranks have the same token.
  std::string token;
  /// Lock on the tracker, held if the target has a step. It protects the tracker and retention.
  /// Saves that run at the same time share this lock.
  std::shared_ptr<StoreLock> root = {};
  std::shared_ptr<StoreLock> directory = {};
  std::vector<std::string> notes = {};  ///< messages for the operator
  /// True if a failed save could not durably restore the old checkpoint. A power cut might then
  /// swap the names of the two checkpoints, so neither directory may be removed.
  bool unsettled = false;
  /// True if prepare found a checkpoint of the target's name, or anything that a save of that name
  /// left. The commit may then remove it.
  bool replaces = false;

  /// False if the store has no locks. Other writers may then be active, so the directories that
  /// they put next to the target must be left alone.
  bool keeps_others_out() const { return !directory || directory->warning().empty(); }
};

/// Where a checkpoint is written: `directory` within the store. If `step` is set, the commit also
/// updates the tracker next to that directory.
struct CommitTarget {
  std::string directory;
  std::optional<Step> step;
  StepNames names = {};  ///< of the iterations beside it, if `step` is set
  /// Number of committed iterations to keep, including this one; at least 1. If absent, all are
  /// kept. See retention.hpp.
  std::optional<std::int32_t> keep = {};
  /// Iterations that this job found damaged during a load (LoadResult::damaged) and has not saved
  /// again since then. `keep` does not include them.
  std::vector<Step> damaged = {};
  /// If this is false and `directory` exists, prepare_protocol and the commit step swap_in throw
  /// USAGE.
  bool replace = true;
  Claim claim = {};

  /// Returns the target `<root>/<name>`. With Megatron's names, it uses the root's tracker.
  static CommitTarget iteration(const std::string& root, Step step, const StepNames& names = {});
  /// True if the commit moves a tracker.
  bool has_tracker() const { return step && names.have_tracker(); }
  std::string saving() const { return aside_path(directory, kSavingSuffix, claim.token); }
  std::string replaced() const { return aside_path(directory, kReplacedSuffix, claim.token); }
};

/// A file written by a rank before the commit.
struct PayloadFile {
  std::string name;
  std::uint64_t bytes = 0;
};

struct CommitContent {
  Metadata metadata;
  /// Common state, a dict or the bytes of its file. If it is None, neither common.pt nor
  /// metadata.json is written (plain DCP).
  Value common;
  bool manifest = false;
  std::vector<FileDigest> digests;  ///< digests of payload files
  std::vector<PayloadFile> payload = {};
};

/// Names of the steps of prepare_protocol, in order.
inline constexpr std::array<std::string_view, 6> kPrepareSteps = {
    "make_root", "lock", "restore_replaced", "sync_root", "clear", "make_saving"};
inline constexpr std::array<std::string_view, 12> kCommitSteps = {
    "payload",   "common_state", "metadata",    "backend_info", "manifest", "sync_directory",
    "read_back", "swap_in",      "sync_parent", "confirm",      "tracker",  "remove_replaced"};

/// A rank's role in a protocol: the leader runs the protocol, and members wait for the leader.
enum class Role : std::uint8_t { kLeader, kMember };

/// Claims the target, removes leftovers of an earlier crash and creates the directory to write
/// into:
///
///   make_root          creates missing parent directories, and makes all of them durable
///   lock               throws LOCKED if another writer holds the target
///   restore_replaced   if a crash interrupted a swap, moves the old checkpoint back
///   sync_root          makes earlier renames durable before the next step removes anything
///   clear              removes unfinished leftovers; if a confirmed checkpoint is in place,
///                      also removes the old checkpoints that it replaced
///   make_saving        creates the directory, with a mark inside
std::vector<ProtocolStep> prepare_protocol(Store& store, CommitTarget& target);
/// Throws NO_SPACE if the store knows that it has less than `needed` bytes for the target. Call it
/// before anything is written.
void require_space(Store& store, const CommitTarget& target, std::uint64_t needed);
/// Runs all steps of prepare_protocol, for a target that a single rank writes.
void prepare(Store& store, CommitTarget& target);
/// Returns the steps of the commit in order. One rank runs them after every payload file is
/// durable. The arguments must outlive the steps.
std::vector<ProtocolStep> commit_protocol(Store& store, CommitTarget& target,
                                          const CommitContent& content);
/// Returns the commit steps that one rank runs: all steps for the leader, none for a member. A
/// member passes empty content.
std::vector<ProtocolStep> commit_part(Store& store, CommitTarget& target,
                                      const CommitContent& content, Role role);
/// Removes leftovers of dead writers from a target that the claim has locked. An old checkpoint
/// that was moved aside is removed only if a confirmed checkpoint has replaced it.
void clear_unfinished(Store& store, CommitTarget& target);
/// Releases the claim. Call it only after every rank has stopped writing. Removes unfinished files
/// if possible and safe, so that they take no space. Never throws.
void abandon(Store& store, CommitTarget& target);
/// Writes the tracker and reads it back.
void move_tracker(Store& store, const CommitTarget& target);

}  // namespace reprise
