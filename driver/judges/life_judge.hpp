#pragma once
// Compares the records of all ranks of one life with each other. Pure.

#include <string_view>
#include <vector>

#include "driver/record/record.hpp"
#include "properties/ruling.hpp"

namespace reprise::driver {

/// Checks the ranks of a life against each other. Rulings:
///
///   FALSE_REPLICA, MULTI_WRITER, NO_WRITER, COMMON_STATE_DIVERGES
///                          the replicas passed to a save are wrong; failed saves are judged, too
///   KEYSET_ASYMMETRY       the ranks saved or requested other keys than the checkpoint has,
///                          or no rank has a tensor of the uninterrupted job
///   STALE_PLAN             the ranks saved other keys than the checkpoint has, because the save
///                          reused a plan
///   MIXED_GENERATION       ranks loaded different checkpoints
///   READ_TWICE             payload was read twice, though the scenario requires one read
///   VERDICT_DISAGREEMENT   ranks disagree on how a save ended
Rulings judge_life(const LifeRecord& life);

/// Rulings on what the ranks did in a phase; see RankRecord::phase.
struct PhaseRulings {
  std::string_view phase;  ///< "save" or "load"; empty if the rulings concern neither
  Rulings rulings;
};
/// Returns the rulings of judge_life in the same order, by phase.
std::vector<PhaseRulings> judge_phases(const LifeRecord& life);

/// True if a planned fault kept this rank out of a collective: the call failed, or came after the
/// deadline. This ends the life of the job.
bool failed_its_peers(const RankRecord& rank);

}  // namespace reprise::driver
