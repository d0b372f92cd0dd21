#pragma once
// Checks that every copy was complete before a checkpoint was written or a loaded job continued. A
// simulated device fills the destination of a copy with a pattern, which stays until somebody waits
// for the copy. Each direction has its own pattern.

#include <cstddef>

#include "properties/finding.hpp"
#include "properties/global_state.hpp"

namespace reprise {

inline constexpr std::byte kUnsettled{0xA5};      ///< copies out of the job's memory (saves)
inline constexpr std::byte kUnsettledLoad{0xB5};  ///< copies into the job's memory (loads)

/// Reports each tensor that contains a pattern: TORN_SNAPSHOT for a save's pattern, NOT_FILLED for
/// a load's. A piece contains the pattern if 16 adjacent bytes are equal to the pattern's byte. A
/// piece of 4 to 15 bytes contains it if all bytes are equal to that byte. Smaller pieces are not
/// checked.
judged::Findings judge_settled(const RankState& loaded);

}  // namespace reprise
