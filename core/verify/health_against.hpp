#pragma once
// Compares the numbers of a checkpoint with those of an older one of the same run: what became NaN,
// zero or constant, what grew, and which weights did not move.

#include <cstdint>

#include "core/checkpoint/tensor_survey.hpp"
#include "core/verify/verify_health.hpp"

namespace reprise {

struct HealthAgainst {
  std::uint64_t compared = 0;  ///< tensors of floats that both have, of one type and shape
  std::uint64_t others = 0;  ///< tensors of floats here that the older one lacks, or has otherwise
  Findings findings;
};

/// Returns errors for tensors that became NaN or infinite in part, and for weights that became zero
/// or of one value; for tensors whose largest absolute value or norm grew beyond the limits; and
/// warnings for moments that became zero, for weights with the same elements as before of which the
/// optimizer keeps moments, and if no weight at all changed. Damage of the older checkpoint is
/// an error, too. `stats` is HealthReport's.
/// Reads the older checkpoint once, on all threads, and weights that may be the same on both sides.
/// Throws the errors of survey() and of TensorReader.
HealthAgainst health_against(Checkpoint& checkpoint, const StatsByKey& stats, Checkpoint& older,
                             const SurveyPorts& ports, const HealthLimits& limits);

/// Judges one tensor, without looking for elements that are the same.
Findings judge_against(const StoredTensor& tensor, const ElementStats& now,
                       const ElementStats& then, const HealthLimits& limits);

}  // namespace reprise
