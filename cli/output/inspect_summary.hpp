#pragma once
// Prints the first screen of `inspect`: what a checkpoint is. Each section has a function; a line
// that has nothing to say is left out.

#include "cli/output/console.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/summary/checkpoint_summary.hpp"

namespace reprise::cli {

/// Prints at most `values` of the small values that are stored; 0 stands for all.
void print_summary(Checkpoint& checkpoint, const CheckpointSummary& summary, std::size_t values,
                   const Console& console);

/// Returns text such as "10 by its name and by common_state['iteration']", or how the two differ.
std::string describe_iteration(const StoredIteration& iteration);

}  // namespace reprise::cli
