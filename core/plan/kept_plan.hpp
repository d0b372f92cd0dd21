#pragma once
// The plan that a job keeps from one save for the next one, so that a job whose structure does not
// change plans only once:
//
//                 save 1   save 2, 3, ...                          a save of another structure
//   plan          made     kept; ranks exchange 16 bytes each      made; all ranks say which keys
//                                                                  appeared, vanished or changed
//
// A kept plan is only a hint. In each save, all ranks exchange signatures of what they save and of
// what they keep, and use the plan only if both match on every rank. The plan of a save is kept
// once that save is committed.

#include <cstdint>
#include <memory>
#include <optional>

#include "core/plan/save_plan.hpp"
#include "core/plan/structure.hpp"

namespace reprise {

/// The plan of the last committed save, and what it was made for.
struct KeptPlan {
  SaveScope scope;      ///< of that save; the same on all ranks
  Structure structure;  ///< of this rank's state, to say what changed since then
  std::shared_ptr<const GlobalPlan> plan;
  SaveScope made_for;  ///< what `plan` was made for: `scope`, or else the two come from two saves
};

/// One rank's place for the plan of one structure. Each rank of a job has one for each structure
/// that it saves, and it outlives the saves that use it.
struct PlanSlot {
  std::optional<KeptPlan> kept;
  std::uint64_t replans = 0;  ///< how often a new plan was made although one was kept
};

}  // namespace reprise
