#pragma once
// Reads tensors once, on all threads, for everything that is told of their elements: digests and
// what their numbers are like.

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/sha256.hpp"
#include "core/checkpoint/tensor_survey.hpp"
#include "core/geometry/element_stats.hpp"

namespace reprise {

struct ContentsWanted {
  bool digest = false;
  bool sha256 = false;
  bool stats = false;

  bool any() const { return digest || sha256 || stats; }
};

/// A field that was not asked for keeps its default.
struct TensorContent {
  /// The digest of docs/trainers.md, which adds up over boxes. The key of a tensor in it is the one
  /// a job knows it by.
  std::uint64_t digest = 0;
  Sha256Digest sha256 = {};  ///< of the whole tensor's elements, row-major, little-endian
  ElementStats stats = {};
};

struct TensorContents {
  std::vector<TensorContent> tensors;  ///< of the given tensors, in their order
  Findings damage;                     ///< records without their checksum, and notes on such
};

/// Reads the tensors. If only digests are wanted, a thread takes a chunk at a time, and otherwise a
/// tensor. The number of threads changes no result. Throws the errors of survey().
TensorContents tensor_contents(Checkpoint& checkpoint, std::span<const StoredTensor* const> tensors,
                               const ContentsWanted& wanted, const SurveyPorts& ports);

}  // namespace reprise
