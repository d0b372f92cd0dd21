#pragma once
// Removes old checkpoints after a new one is committed: keeps the newest N and removes older ones.
// N does not include damaged checkpoints that a load skipped. Runs after the tracker durably refers
// to the new checkpoint.
//
//   clear_removing   finishes removals that a crash interrupted
//   choose           selects what to remove, from the iterations present and the tracker
//   set_aside        iter_0000002 -> iter_0000002.removing-<token>, a name that no load accepts;
//                    older copies that this checkpoint replaced get the same suffix
//   sync_root        makes the new names durable before any byte is deleted
//   unmark           durably deletes the metadata first
//   remove           deletes the rest, and leftovers of unfinished saves of other iterations
//
// After a crash between any two steps, each checkpoint is either complete under its name or absent.

#include <vector>

#include "core/checkpoint/generations.hpp"
#include "core/save/commit_protocol.hpp"

namespace reprise {

/// Names of the steps, in order.
inline constexpr std::array<std::string_view, 6> kRetentionSteps = {
    "clear_removing", "choose", "set_aside", "sync_root", "unmark", "remove"};

/// What to keep. `newest` is the tracker's iteration, which was just saved.
struct Kept {
  Step newest;
  std::int32_t count = 1;          ///< number to keep; at least 1
  std::vector<Step> damaged = {};  ///< see CommitTarget::damaged
};

/// Returns the iterations to remove, oldest first. `present` is the result of generations().
/// Considers only committed iterations up to `newest`, the tracker's iteration. Keeps the last
/// `count` of them and removes the older ones. Iterations that a load skipped as damaged are not
/// included in `count`. Such an iteration is removed only when `count` newer ones are kept, because
/// it may be intact: perhaps only the read failed. Two kinds of iterations are neither counted nor
/// removed: unfinished iterations, and iterations newer than the tracker's, which a load abandoned.
std::vector<Step> outdated(const std::vector<Generation>& present, const Kept& kept);

/// Returns the steps of retention; returns none if `target.keep` is not set. If the tracker has no
/// iteration, the steps choose no iterations to remove. Foreign files are kept and listed in the
/// claim's notes. The arguments must outlive the steps; one rank runs them.
std::vector<ProtocolStep> retention_protocol(Store& store, CommitTarget& target);

}  // namespace reprise
