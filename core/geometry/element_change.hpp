#pragma once
// Measures how far elements moved: the norm of the difference, relative to the norm before.

#include <cstddef>
#include <cstdint>

#include "reprise/tensor.hpp"

namespace reprise {

/// Sums of squares over the numbers of elements. Sums of parts of a tensor add up to those of the
/// whole.
struct ElementChange {
  double before = 0;      ///< of the numbers before
  double difference = 0;  ///< of the numbers after minus those before

  /// Returns ||after - before|| / ||before||: 0 if nothing changed, infinity if all was zero
  /// before, and NaN if a number on either side is NaN, or infinite where they differ.
  double relative() const;

  void add(const ElementChange& other) {
    before += other.before;
    difference += other.difference;
  }
  /// Adds elements in the host's byte order. Both types have as many numbers in an element.
  void add(DType before_type, const std::byte* before_elements, DType after_type,
           const std::byte* after_elements, std::int64_t elements);
  /// Adds elements that did not change.
  void add_unchanged(DType dtype, const std::byte* elements, std::int64_t count);
};

}  // namespace reprise
