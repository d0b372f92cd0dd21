#pragma once
// Commits that treat an object store as a file system.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Changes names for a writer whose lease another writer has taken.
void change_names_without_fence(Policies& policies);
/// Uses a list to tell if something exists.
void trust_lists(Policies& policies);
/// Puts the small object that makes the checkpoint visible before the rest.
void show_before_content(Policies& policies);

}  // namespace reprise::sim
