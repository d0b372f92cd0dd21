#pragma once
// Adds a mutant to the list of all mutants. Nothing else names it.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Stands below a mutant's wrong functions, as a constant of the file. The build gives the objects
/// of this folder to each program whole, because a linker would leave such files out of an archive.
struct Registration {
  explicit Registration(Mutant mutant);
};

}  // namespace reprise::sim
