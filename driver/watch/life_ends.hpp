#pragma once
// Says whether a life of a watched command ended as it was meant to.

#include <string>
#include <vector>

#include "driver/watch/watch_judgement.hpp"

namespace reprise::driver {

enum class MeantTo : std::uint8_t { kEnd, kBeKilled };

/// Returns the exit code 16 or 17 if all ranks ended with it: so a job of Megatron asks to be
/// started again when it has seen a wrong result. 0 if they did not.
int planned_end(const LifeRecording& life);

/// Returns what speaks against using the life; empty if it ended as it was meant to. `number` is
/// the life's index among all lives; only a life that resumes can fail, others are inconclusive.
/// `uninterrupted` is life A; null for life A itself.
std::vector<WatchFinding> judge_end(const WatchedLife& life, std::size_t number, MeantTo meant,
                                    const LifeRecording* uninterrupted);

}  // namespace reprise::driver
