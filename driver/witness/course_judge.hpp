#pragma once
// Compares the course of a life (its steps and end state) with another run's. Pure.

#include <optional>
#include <string>

#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

/// The run with which the course of a life is compared.
struct CourseReference {
  const LifeEvidence& life;
  std::string called;     ///< how messages refer to this run
  bool same_end = false;  ///< true if both runs must end at the same step
  /// True if both runs began with the same state. If they differ before they save something, two
  /// runs of the same steps differ.
  bool same_start = false;
  /// True if the life may hold objects that the reference lacks, because a planned fault struck it
  /// or an earlier life.
  bool may_hold_more = false;
};

/// Reports, for each metric, the first step at which it is not bitwise equal to the reference's,
/// the earliest step first. Also reports a difference between the end states: a key that only one
/// of them has, or another content. Adds an inconclusive finding if only one of the runs reports a
/// metric.
void judge_course(std::size_t number, const LifeEvidence& life, const CourseReference& reference,
                  Findings& findings);

/// Adds an inconclusive finding if the life reports losses, and none of them is finite.
void judge_finite_losses(std::size_t number, const LifeEvidence& life, Findings& findings);

/// Reports a step whose learning rate differs from that of the uninterrupted run. Comparing with a
/// second run from the same checkpoint would not be enough: a rate that is wrong after a load is
/// also wrong in the second run. Rates do not depend on the layout, so the uninterrupted run can be
/// used under any layout.
void judge_schedule(std::size_t number, const LifeEvidence& life, const LifeEvidence& uninterrupted,
                    Findings& findings);

/// Reports the first loss after a load if its relative difference from the loss of the
/// uninterrupted run is greater than `within`. This loss is computed from the loaded state before
/// any update, so another layout changes only the order of sums. A second run from the same
/// checkpoint can't replace this check: if a load is wrong only under the new layout, it is also
/// wrong in the second run. Compares nothing if the step takes other samples than in the
/// uninterrupted run, as with another number of data-parallel ranks.
void judge_first_loss(std::size_t number, const LifeEvidence& life,
                      const LifeEvidence& uninterrupted, double within, Findings& findings);

}  // namespace reprise::driver
