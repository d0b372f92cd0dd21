#pragma once
// Removes old checkpoints after a new one is committed: those older than the newest N, not counting
// damaged ones that a load skipped. Runs once the tracker durably names the new one.
//
//   clear_removing   finishes removals that a crash interrupted
//   choose           selects what to remove, from the iterations present and the tracker
//   set_aside        iter_0000002 -> iter_0000002.removing-<token>, a name that no load accepts;
//                    copies that it had replaced get the same ending
//   sync_root        only after this may a byte of it be deleted
//   unmark           durably deletes its metadata first
//   remove           deletes the rest, and leftovers of unfinished saves of other iterations
//
// After a crash between any two steps, each checkpoint is complete under its name or not there.

#include <vector>

#include "core/checkpoint/generations.hpp"
#include "core/save/commit.hpp"

namespace reprise {

/// Names of the steps, in order.
inline constexpr std::array<std::string_view, 6> kRetentionSteps = {
    "clear_removing", "choose", "set_aside", "sync_root", "unmark", "remove"};

/// Iterations to keep when the tracker names `newest`, which was saved just now.
struct Kept {
  Step newest;
  std::int32_t count = 1;          ///< at least 1
  std::vector<Step> damaged = {};  ///< as in CommitTarget
};

/// Returns the iterations to remove, oldest first: committed ones older than the last `count` up to
/// the tracker's, of which `newest` is one. One that a load skipped as damaged does not count
/// toward `count` and is removed no sooner than the others, since the read may have been at fault.
/// Those newer than the tracker's were abandoned by a load: they neither count nor are removed, and
/// the same holds for unfinished ones. `present` is as generations() lists it.
std::vector<Step> outdated(const std::vector<Generation>& present, const Kept& kept);

/// Returns no steps without `target.keep` or if no tracker names an iteration. Foreign files are
/// kept and noted in the claim. The arguments must outlive the steps; one rank runs them.
std::vector<ProtocolStep> retention_protocol(Store& store, CommitTarget& target);

}  // namespace reprise
