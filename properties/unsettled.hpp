#pragma once
// Checks that every copy was complete before a checkpoint was written or a loaded job continued.
// Simulated devices fill the destination of a copy with a pattern until somebody waits for the
// copy; each direction has its own pattern.

#include <cstddef>

#include "properties/global_state.hpp"
#include "properties/ruling.hpp"

namespace reprise {

inline constexpr std::byte kUnsettled{0xA5};      ///< copies out of the job's memory, for a save
inline constexpr std::byte kUnsettledLoad{0xB5};  ///< copies into it, for a load

/// Finds TORN_SNAPSHOT, or NOT_FILLED for the pattern of a load, for each tensor with a piece that
/// holds the pattern in 16 adjacent bytes, or entirely if it is smaller. Pieces of less than 4
/// bytes are not checked.
Rulings judge_settled(const RankState& loaded);

}  // namespace reprise
