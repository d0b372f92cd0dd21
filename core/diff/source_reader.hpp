#pragma once
// Reads tensors of two checkpoints and tells how their elements belong together. For one thread.

#include <optional>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/diff/diff.hpp"
#include "core/diff/tensor_source.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// A tensor and where it is stored.
struct SidedTensor {
  bool of_left = true;
  const StoredTensor* tensor = nullptr;

  friend auto operator<=>(const SidedTensor&, const SidedTensor&) = default;
};

class SourceReader {
 public:
  SourceReader(const Checkpoint& left, const Checkpoint& right, Device& device);

  /// Returns the relation of the elements of two tensors of one shape; nothing if there is none.
  /// Reads from the first difference on, and stops as soon as no relation is left.
  std::optional<ValueRelation> relation(const StoredTensor& left, const StoredTensor& right,
                                        const std::optional<Dims>& first_difference);

  enum class Equal { kNo, kYes, kConstant };
  /// Compares the elements of two boxes of the same extents, or of exchanged last two if
  /// `transposed`. The elements of `from` are converted to the type of `to` before. Returns
  /// kConstant if they are the same and all of one value.
  Equal compare(SidedTensor from, const Box& from_box, SidedTensor to, const Box& to_box,
                bool transposed);

  /// Does the same for blocks of slices along a dimension, and returns a result for each block.
  /// Stops at the first kNo; the results after it are kNo, too.
  std::vector<Equal> compare(SidedTensor from, SidedTensor to, std::size_t dimension,
                             const std::vector<LineBlock>& blocks);

  /// Throws STALE_METADATA if a checkpoint was replaced meanwhile.
  void require_in_place() const;

 private:
  TensorReader& of(SidedTensor which);
  /// Reads elements of `from` as `dtype`, row-major.
  ByteSpan read_as(SidedTensor from, const Box& box, DType dtype);
  std::vector<Equal> compare_columns(SidedTensor from, SidedTensor to,
                                     const std::vector<LineBlock>& blocks);

  struct Side {
    Checkpoint checkpoint;
    Bytes staging;
    Bytes block;
    const StoredTensor* tensor = nullptr;
    std::optional<TensorReader> reader = {};
  };

  Device& device_;
  Side sides_[2];  ///< left, right
  Bytes converted_;
};

}  // namespace reprise
