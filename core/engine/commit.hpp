#pragma once
// The instant at which a checkpoint exists, as a protocol of named steps run by one loop.
//
//   iter_0000010.saving-<token>/   payload files, synced by their writers
//     payload              each is there and as long as its writer says
//     common_state         common.pt
//     metadata             .metadata
//     backend_info         metadata.json
//     manifest             integrity.json (if asked for)
//     sync_directory
//     read_back            all of it is there as it was written, before anything makes way
//     swap_in              publish as iter_0000010; replace it if it exists
//     sync_parent          <- from here on the checkpoint exists
//     confirm              what stands there is what was written, not what the store says it did
//     tracker              latest_checkpointed_iteration.txt, beside and published
//     remove_replaced      what stood there before; failing here is no failure of the save
//
// If a step fails between swap_in and confirm, what stood there is put back. Where a store can't
// replace in one step, the old directory is put aside as iter_0000010.replaced-<token> first;
// `locate` finds it there if a crash falls between the two. What makes way is marked. One writer
// does this at a time: see Claim.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/phases.hpp"
#include "core/engine/set_aside.hpp"
#include "core/format/integrity.hpp"
#include "core/format/metadata.hpp"
#include "reprise/store.hpp"
#include "reprise/types.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// A writer's hold on its target, from prepare until the checkpoint is committed or the writer
/// gives up. The leader has the locks; they end with its process at the latest.
struct Claim {
  std::string token;  ///< in the names of what this writer sets aside; the same on all ranks
  /// On the tracker, where the target has a step: for it and for retention. Saves in flight beside
  /// each other share one.
  std::shared_ptr<StoreLock> root = {};
  std::shared_ptr<StoreLock> directory = {};
  std::vector<std::string> notes = {};  ///< for the operator
  /// It is not known to be durable that what stood there stands there again: after a power cut the
  /// names of the two may be exchanged, so that neither may be removed.
  bool unsettled = false;

  /// False where the store has no locks: others may be at work beside this one, and what they set
  /// aside is not touched.
  bool keeps_others_out() const { return !directory || directory->warning().empty(); }
};

/// Where a checkpoint goes: `directory` within the store; with a step the tracker beside it moves.
struct CommitTarget {
  std::string directory;
  std::optional<Step> step;
  /// How many committed iterations stay beside the tracker, this one among them; at least 1.
  /// Nothing: all. See retention.hpp.
  std::optional<std::int32_t> keep = {};
  /// Iterations that this job's loads passed over as damaged (LoadReport::damaged) and that it has
  /// not saved anew since. They do not count among those that stay.
  std::vector<Step> damaged = {};
  /// May a checkpoint of that name make way? If not, prepare refuses (USAGE), and so does swap_in.
  bool replace = true;
  Claim claim = {};

  /// `<root>/iter_%07d` with the root's tracker.
  static CommitTarget iteration(const std::string& root, Step step);
  std::string saving() const { return aside_path(directory, kSavingSuffix, claim.token); }
  std::string replaced() const { return aside_path(directory, kReplacedSuffix, claim.token); }
};

/// A file that a rank wrote before the commit.
struct PayloadFile {
  std::string name;
  std::uint64_t bytes = 0;
};

struct CommitContent {
  Metadata metadata;
  /// A dict; without it neither common.pt nor metadata.json is written (plain DCP).
  std::optional<Dict> common;
  bool manifest = false;
  std::vector<FileDigest> digests;  ///< of payload files
  std::vector<PayloadFile> payload = {};
};

/// Names of the steps below, in order.
inline constexpr std::array<std::string_view, 6> kPrepareSteps = {
    "make_root", "lock", "restore_replaced", "sync_root", "clear", "make_saving"};
inline constexpr std::array<std::string_view, 12> kCommitSteps = {
    "payload",   "common_state", "metadata",    "backend_info", "manifest", "sync_directory",
    "read_back", "swap_in",      "sync_parent", "confirm",      "tracker",  "remove_replaced"};

/// What a rank is in a protocol: the one that runs it, or one of those that wait.
enum class Part : std::uint8_t { kLeader, kMember };

/// Claims the target, removes what an earlier crash left of it and makes the directory to write
/// into:
///
///   make_root          the directories above, durably, also those that somebody else made
///   lock               LOCKED if another writer is at work there
///   restore_replaced   a crash fell between the two steps of a swap: the old one goes back
///   sync_root          no power cut may bring back names that lead to what is now removed
///   clear              what that crash left unfinished, and, where a confirmed checkpoint stands,
///                      older ones that made way for it
///   make_saving        with a mark inside
std::vector<ProtocolStep> prepare_protocol(Store& store, CommitTarget& target);
/// All of it, by one rank alone.
void prepare(Store& store, CommitTarget& target);
/// The steps in order. One rank runs them, after every payload file is durable. The arguments
/// outlive them.
std::vector<ProtocolStep> commit_protocol(Store& store, CommitTarget& target,
                                          const CommitContent& content);
/// What each rank runs: the leader commits, nobody else does anything. Members get no content.
std::vector<ProtocolStep> commit_part(Store& store, CommitTarget& target,
                                      const CommitContent& content, Part part);
/// Removes what writers left of the target that died or gave up; the claim has its lock. The
/// checkpoint that made way for one goes only once one that was confirmed stands in its place.
void clear_unfinished(Store& store, CommitTarget& target);
/// Gives the claim up, when nobody writes any more. What is unfinished is removed, as far as that
/// is possible and safe, so that it takes no space; throws nothing.
void abandon(Store& store, CommitTarget& target);
/// Writes the tracker, and looks that it says so.
void move_tracker(Store& store, const CommitTarget& target);

}  // namespace reprise
