#pragma once
// Reads a layout such as that of `--layout tp=8,pp=4` for a stored checkpoint: finds out what its
// ranks ask for.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/plan/layout_boxes.hpp"
#include "sim/job/groups/layout.hpp"

namespace reprise::cli {

/// Ranks that ask for the same boxes.
struct RanksAtPlace {
  LayoutPlace place;
  std::vector<std::int32_t> ranks;  ///< ascending
};

/// A layout, and what its ranks ask for of a checkpoint, which must outlive it.
struct LayoutOfCheckpoint {
  sim::Layout layout;
  LayoutParts parts;
  SavedBy saved_by;
  std::unique_ptr<LayoutBoxes> boxes;
  std::vector<RanksAtPlace> places;  ///< by the first rank of each, ascending

  std::vector<LayoutPlace> places_alone() const;
  std::vector<std::uint64_t> counts() const;  ///< numbers of ranks at the places
  /// Says what could not be told, and was taken as whole or left out.
  std::vector<std::string> notes() const;
  /// True if there are tensors of which no rank of this layout can ask for anything.
  bool has_unfit() const { return !boxes->unfit().empty(); }
};

/// Plans are made for up to this many ranks.
inline constexpr std::int32_t kPlannedRanksMax = 1 << 17;
/// Returns the layout of a plan. Throws USAGE for text that is no layout, and for more ranks.
sim::Layout planned_layout(const std::string& text);

/// Throws USAGE as planned_layout() does, and for a checkpoint of several modules, each of which
/// has a layout of its own; LIMIT if there are too many tensors and ranks; and LAYOUT_MISMATCH as
/// LayoutBoxes does.
LayoutOfCheckpoint layout_of_checkpoint(const std::string& text, Checkpoint& checkpoint);

/// Returns the layout of the job that saved, by Megatron's arguments in the common state; one rank
/// if there are none. Nothing checks whether they fit each other.
sim::Layout saving_layout(const Value& common);
LayoutParts parts_of(const sim::Layout& layout);

/// Returns ranks as text: "0-3, 8".
std::string ranks_text(const std::vector<std::int32_t>& ranks);

}  // namespace reprise::cli
