#pragma once
// What goes when a new checkpoint stands: what is older than the newest N that no load passed over
// as damaged. A protocol of named steps, run after the tracker names the new one durably.
//
//   clear_removing   what an earlier crash left of a removal
//   choose           what goes, from what is there and what the tracker says
//   set_aside        iter_0000002 -> iter_0000002.removing-<token>: no load takes that name; so
//                    does what had made way for it: its name gets the same ending
//   sync_root        <- only now may a byte of it go
//   unmark           its metadata goes first, and is gone for good
//   remove           then the rest, and what unfinished saves of other iterations left
//
// A crash between any two leaves each checkpoint whole under its name, or not under its name.

#include <vector>

#include "core/engine/commit.hpp"
#include "core/engine/generations.hpp"

namespace reprise {

/// Names of its steps, in order.
inline constexpr std::array<std::string_view, 6> kRetentionSteps = {
    "clear_removing", "choose", "set_aside", "sync_root", "unmark", "remove"};

/// What stays when the tracker names `newest`, which was saved just now.
struct Kept {
  Step newest;
  std::int32_t count = 1;          ///< at least 1
  std::vector<Step> damaged = {};  ///< as in CommitTarget
};

/// Which iterations go, oldest first: the committed ones that are older than the last `count` up to
/// the tracker's, of which `newest` is one. What a load passed over as damaged does not count, and
/// goes no sooner than others: it may have been the read that failed. What is newer than the
/// tracker says was given up by an earlier load, and neither counts nor goes; nor does what is
/// unfinished. `present` as generations() lists it.
std::vector<Step> outdated(const std::vector<Generation>& present, const Kept& kept);

/// Nothing without `target.keep`, or where no tracker names an iteration. What belongs to no
/// checkpoint stays and is noted in the claim. The arguments outlive the steps; one rank runs them.
std::vector<ProtocolStep> retention_protocol(Store& store, CommitTarget& target);

}  // namespace reprise
