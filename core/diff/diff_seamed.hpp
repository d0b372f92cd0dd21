#pragma once
// A variant of diff() in which some decisions are replaced, for mutants and engine tests. All other
// code uses diff.hpp.

#include "core/diff/diff.hpp"
#include "core/seams/diff_seams.hpp"

namespace reprise {

/// The same as diff() in diff.hpp, except that `seams` provides the functions that make the
/// decisions.
DiffReport diff(Checkpoint& left, Checkpoint& right, Device& device, const DiffOptions& options,
                Progress& progress, const DiffSeams& seams);

}  // namespace reprise
