#pragma once
// Defects of jobs whose modules have their own ranks: who writes the settings of a module's
// optimizer, under which key, and who decides a step.

#include <span>

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Returns the mutants, sorted by name.
std::span<const Mutant> module_mutants();

}  // namespace reprise::sim
