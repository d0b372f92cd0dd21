#pragma once
// Computes the digests of stored tensors: those of docs/trainers.md, which add up over boxes, so
// that every sharding of a tensor gives the same digest.

#include <cstdint>
#include <span>
#include <vector>

#include "core/checkpoint/tensor_survey.hpp"

namespace reprise {

struct ContentDigest {
  std::uint64_t digest = 0;
  std::vector<std::uint64_t> chunks = {};  ///< in the order of StoredTensor::chunks; sum: digest
};

struct ContentDigests {
  std::vector<ContentDigest> tensors;  ///< of the given tensors, in their order
  Findings damage;                     ///< records without their checksum, and notes on such
};

/// Reads the tensors on all threads. The key of a tensor in its digest is the one a job knows it
/// by. Throws the errors of survey().
ContentDigests content_digests(Checkpoint& checkpoint, std::span<const StoredTensor* const> tensors,
                               const SurveyPorts& ports);

}  // namespace reprise
