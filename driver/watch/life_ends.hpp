#pragma once
// Says whether a life of a watched command ended as it was meant to.

#include <string>
#include <vector>

#include "driver/watch/watch_judgement.hpp"

namespace reprise::driver {

enum class MeantTo : std::uint8_t { kEnd, kBeKilled };

/// Returns what speaks against using the life; empty if it ended as it was meant to. `number` is
/// the life's index among all lives; only a life that resumes can fail, others are inconclusive.
/// `ranks` is the number of ranks of life A; 0 for life A itself.
std::vector<WatchFinding> judge_end(const WatchedLife& life, std::size_t number, MeantTo meant,
                                    std::size_t ranks);

}  // namespace reprise::driver
