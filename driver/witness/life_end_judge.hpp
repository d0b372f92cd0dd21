#pragma once
// Judges how a life began and ended: its processes, and what their witness files say of it. Pure.

#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

/// Adds a finding for each witness file that can't be read, or is of another life, rank, world or
/// layout.
void judge_life_start(std::size_t number, const LifeEvidence& life, Findings& findings);

/// Adds a finding for each rank that did not end as planned. Adds an inconclusive one if a planned
/// kill or fault never came, if a program could not start, or if it was only too slow.
void judge_life_end(std::size_t number, const LifeEvidence& life, Findings& findings);

}  // namespace reprise::driver
