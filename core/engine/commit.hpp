#pragma once
// The instant at which a checkpoint exists, as a protocol of named steps run by one loop.
//
//   iter_0000010.saving/   payload files, synced by their writers
//     payload              each is there and as long as its writer says
//     common_state         common.pt
//     metadata             .metadata
//     backend_info         metadata.json
//     manifest             integrity.json (if asked for)
//     sync_directory
//     swap_in              rename to iter_0000010; exchange with it if it exists
//     sync_parent          <- from here on the checkpoint exists
//     confirm              what stands there is what was written, not what the store says it did
//     tracker              latest_checkpointed_iteration.txt, beside and renamed
//     remove_replaced      what stood there before; failing here is no failure of the save
//
// A store that cannot exchange moves the old directory to iter_0000010.replaced first; `locate`
// finds it there if a crash falls between the two renames.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.hpp"
#include "core/engine/phases.hpp"
#include "core/format/integrity.hpp"
#include "core/format/metadata.hpp"
#include "core/ports/store.hpp"
#include "core/state/value.hpp"

namespace reprise {

/// What the protocol appends to a directory's name: while it is written, and while it makes way.
inline constexpr std::string_view kSavingSuffix = ".saving";
inline constexpr std::string_view kReplacedSuffix = ".replaced";

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

  /// `<root>/iter_%07d` with the root's tracker.
  static CommitTarget iteration(const std::string& root, Step step);
  std::string saving() const { return directory + std::string(kSavingSuffix); }
  std::string replaced() const { return directory + std::string(kReplacedSuffix); }
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
inline constexpr std::array<std::string_view, 5> kPrepareSteps = {
    "make_root", "restore_replaced", "sync_root", "clear", "make_saving"};
inline constexpr std::array<std::string_view, 11> kCommitSteps = {
    "payload", "common_state", "metadata", "backend_info", "manifest",       "sync_directory",
    "swap_in", "sync_parent",  "confirm",  "tracker",      "remove_replaced"};

/// What a rank is in a protocol: the one that runs it, or one of those that wait.
enum class Part : std::uint8_t { kLeader, kMember };

/// Removes what an earlier crash left and makes the directory to write into:
///
///   make_root          the directories above, durably, also those that somebody else made
///   restore_replaced   a crash fell between the two renames of a swap: the old one goes back
///   sync_root          no power cut may bring back names that lead to what is now removed
///   clear              what that crash left of this iteration
///   make_saving
std::vector<ProtocolStep> prepare_protocol(Store& store, const CommitTarget& target);
/// All of it, by one rank alone.
void prepare(Store& store, const CommitTarget& target);
/// The steps in order. One rank runs them, after every payload file is durable. The arguments
/// outlive them.
std::vector<ProtocolStep> commit_protocol(Store& store, const CommitTarget& target,
                                          const CommitContent& content);
/// What each rank runs: the leader commits, nobody else does anything. Members get no content.
std::vector<ProtocolStep> commit_part(Store& store, const CommitTarget& target,
                                      const CommitContent& content, Part part);
/// Writes the tracker, and looks that it says so.
void move_tracker(Store& store, const CommitTarget& target);

}  // namespace reprise
