#pragma once
// Compares the course of a life (its steps, end state and samples) with another run's. Pure.

#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

/// Returns the step's metric from the first rank that reports it; nothing if none does.
std::optional<double> metric_at(const std::vector<RankWitness>& ranks, std::int64_t step,
                                const std::string& metric);
/// Returns the steps that a life took, ascending.
std::vector<std::int64_t> steps_of(const std::vector<RankWitness>& ranks);

/// Returns the step that the life loaded first; nothing if it loaded nothing.
std::optional<std::int64_t> loaded_by(const LifeEvidence& life);

/// The run with which the course of a life is compared.
struct CourseReference {
  const LifeEvidence& life;
  std::string called;     ///< its name in messages
  bool same_end = false;  ///< true if both runs must end at the same step
};

/// Reports the first step whose metrics differ from the reference's, compared bit for bit, and a
/// difference between the end states. Adds an inconclusive finding if only one of the runs reports
/// a metric.
void judge_course(std::size_t number, const LifeEvidence& life, const CourseReference& reference,
                  WitnessFindings& findings);

/// Reports a step whose learning rate differs from that of the uninterrupted run. A rate that is
/// wrong after a load is also wrong in a second run from the same checkpoint, so comparing with
/// that run would not show it. The uninterrupted run can be used because rates do not depend on the
/// layout.
void judge_schedule(std::size_t number, const LifeEvidence& life, const LifeEvidence& uninterrupted,
                    WitnessFindings& findings);

/// Reports the first loss after a load if it differs from that of the uninterrupted run by more
/// than `within`, relative to the latter. This loss comes from the loaded state before any update,
/// so under another layout it differs only by the order of sums. A load that is wrong only under
/// that layout is also wrong in a second run from the same checkpoint.
void judge_first_loss(std::size_t number, const LifeEvidence& life,
                      const LifeEvidence& uninterrupted, double within, WitnessFindings& findings);

/// Reports samples that the lives took twice or left out. Steps that a load undid are not counted.
/// Adds an inconclusive finding if only one of the runs reports the samples of a step.
void judge_samples(const std::vector<LifeEvidence>& lives, const LifeEvidence* control,
                   WitnessFindings& findings);

}  // namespace reprise::driver
