#pragma once
// Judges a life that is a command, from how the command ended and from the checkpoint that it left.
// Pure.

#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

/// Adds a finding if the command did not end as planned, or if the checkpoint that it had to leave
/// is missing or can't be read. If there was a checkpoint of that step before, all its tensors and
/// objects must still be there, with the same content.
void judge_command(std::size_t number, const LifeEvidence& life, WitnessFindings& findings);

}  // namespace reprise::driver
