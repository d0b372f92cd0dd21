#pragma once
// Commits that take an object store for a file system.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// Names change for a writer whose lease another one has taken.
void change_names_without_fence(Policies& policies);
/// A list is asked whether something is there.
void trust_lists(Policies& policies);
/// The small object that makes the checkpoint visible is put before the rest.
void show_before_content(Policies& policies);

}  // namespace reprise::sim
