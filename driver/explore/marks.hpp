#pragma once
// The named states that a search must have been in. A mark is read off the records of a timeline
// and off the store, so no code of the engine knows of it.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "driver/language/scenario.hpp"
#include "driver/record/record.hpp"
#include "reprise/store.hpp"
#include "sim/faults/fault_book.hpp"

namespace reprise::driver {

/// Returns the names of all marks, sorted. A search reports each of them, with how many of its
/// timelines reached it.
const std::vector<std::string>& all_marks();

/// The names in the checkpoints' directory after a life and its power cut.
struct StoreView {
  std::set<std::int64_t> steps = {};         ///< steps with a directory in its place
  std::optional<std::int64_t> tracked = {};  ///< the step that the tracker names
  bool saving = false;                       ///< a directory of an unfinished save
  bool replaced = false;                     ///< an old checkpoint that was moved away
  bool removing = false;                     ///< a checkpoint whose removal is not finished
};
StoreView view_of(Store& store);

/// The evidence from which marks_of() reads the marks of one life.
struct MarkEvidence {
  const Scenario& scenario;
  std::size_t life;
  std::span<const LifeRecord> lives;  ///< all that ran
  std::span<const StoreView> stores;  ///< after each of them
  const Past& past;                   ///< after the last of them
};
/// Returns the names of the marks that this life reached, each one of all_marks().
std::vector<std::string> marks_of(const MarkEvidence& evidence);

/// Returns where a fault struck, such as "commit/swap_in before" or "write during".
std::string site_of(const sim::FaultState& fault);

}  // namespace reprise::driver
