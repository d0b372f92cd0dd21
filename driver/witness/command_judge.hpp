#pragma once
// Judges a life that is a command: checks how the command ended and which checkpoint it left. Pure.

#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

/// Adds a finding if the command did not end as planned, or if the checkpoint that it had to leave
/// is missing or can't be read. If this step already had a checkpoint before the command ran, all
/// tensors and objects of that checkpoint must still exist, with the same content.
void judge_command(std::size_t number, const LifeEvidence& life, Findings& findings);

}  // namespace reprise::driver
