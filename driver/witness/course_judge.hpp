#pragma once
// Compares the course of a life (its steps, end state and samples) with another run's. Pure.

#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

/// Returns the step's metric from the first rank that reports it; nothing if none does.
std::optional<double> metric_at(const std::vector<RankWitness>& ranks, std::int64_t step,
                                const std::string& metric);
/// Returns the steps that a life trained, in ascending order.
std::vector<std::int64_t> steps_of(const std::vector<RankWitness>& ranks);

/// Returns the step of the first checkpoint that the life loaded; nothing if it loaded none.
std::optional<std::int64_t> loaded_by(const LifeEvidence& life);

/// The run with which the course of a life is compared.
struct CourseReference {
  const LifeEvidence& life;
  std::string called;     ///< how messages refer to this run
  bool same_end = false;  ///< true if both runs must end at the same step
};

/// Reports the first step whose metrics are not bitwise equal to those of the reference. Also
/// reports a difference between the end states. Adds an inconclusive finding if only one of the
/// runs reports a metric.
void judge_course(std::size_t number, const LifeEvidence& life, const CourseReference& reference,
                  WitnessFindings& findings);

/// Reports a step whose learning rate differs from that of the uninterrupted run. Comparing with a
/// second run from the same checkpoint would not be enough: a rate that is wrong after a load is
/// also wrong in the second run. Rates do not depend on the layout, so the uninterrupted run can be
/// used under any layout.
void judge_schedule(std::size_t number, const LifeEvidence& life, const LifeEvidence& uninterrupted,
                    WitnessFindings& findings);

/// Reports the first loss after a load if its relative difference from the loss of the
/// uninterrupted run is greater than `within`. This loss is computed from the loaded state before
/// any update, so another layout changes only the order of sums. A second run from the same
/// checkpoint can't replace this check: if a load is wrong only under the new layout, it is also
/// wrong in the second run.
void judge_first_loss(std::size_t number, const LifeEvidence& life,
                      const LifeEvidence& uninterrupted, double within, WitnessFindings& findings);

/// Reports samples that the lives used twice or never. Steps that a load undid are not counted.
/// Adds an inconclusive finding if only one of the runs reports the samples of a step.
void judge_samples(const std::vector<LifeEvidence>& lives, const LifeEvidence* control,
                   WitnessFindings& findings);

}  // namespace reprise::driver
