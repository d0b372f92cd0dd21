#pragma once
// Was everything that a checkpoint holds copied before it was written, and everything that was
// loaded before the job went on? Simulated devices leave a pattern where a copy goes until somebody
// waits for it, one for each direction.

#include <cstddef>

#include "properties/global_state.hpp"
#include "properties/ruling.hpp"

namespace reprise {

inline constexpr std::byte kUnsettled{0xA5};      ///< out of the job's memory, for a save
inline constexpr std::byte kUnsettledLoad{0xB5};  ///< into it

/// TORN_SNAPSHOT or, for that of a load, NOT_FILLED for each tensor of which a piece holds the
/// pattern, in 16 bytes side by side or, if it is smaller, as a whole. Pieces of less than 4 bytes
/// tell nothing.
Rulings judge_settled(const RankState& loaded);

}  // namespace reprise
