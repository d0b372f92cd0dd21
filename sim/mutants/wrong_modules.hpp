#pragma once
// What goes wrong where modules stand on ranks of their own: who writes what a module's optimizer
// says of itself, under which key, and who decides a step.

#include <span>

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Sorted by name.
std::span<const Mutant> module_mutants();

}  // namespace reprise::sim
