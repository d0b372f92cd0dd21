#pragma once
// Defines a rank's part of one tensor under model parallelism. The part is a local array. Each
// local index corresponds to an index of the global tensor.
//
//   fc1 [12, 4]: a gate half above an up half; on rank tp 1 of 2, the local shape is [6, 4]
//     local rows [0, 3) are rows [3, 6)   (its part of the gate half)
//     local rows [3, 6) are rows [9, 12)  (its part of the up half)

#include <span>
#include <vector>

#include "core/geometry/piece.hpp"
#include "core/geometry/placement.hpp"
#include "sim/job/model/model.hpp"
#include "sim/job/model/processor.hpp"

namespace reprise::sim {

struct LocalTensor {
  Dims shape;  ///< shape of the local array
  /// For each dimension, the intervals of global indices that correspond to the local indices, in
  /// the order of the local indices.
  std::vector<std::vector<Interval>> global;

  Box whole() const { return Box::whole(shape); }
};

/// Returns one rank's part of a parameter. `placement` splits each component of a fused dimension
/// separately. Throws LAYOUT_MISMATCH, as Placement::box does.
LocalTensor local_tensor(const ParameterSpec& spec, const Placement& placement, const Mesh& mesh,
                         GroupRank member, ChunkRule slice);

/// pieces_packed() describes a buffer that holds the boxes one after another, each row-major.
/// Returns the pieces of the buffer with their global boxes. Skips boxes without elements.
std::vector<Piece> pieces_packed(const LocalTensor& tensor, std::span<const Box> boxes);
/// Returns the same global boxes in the same order as pieces_packed(), but as pieces of the local
/// array itself.
std::vector<Piece> pieces_in_place(const LocalTensor& tensor, std::span<const Box> boxes);

/// Returns the total number of elements in the boxes.
std::int64_t elements_of(std::span<const Box> boxes);

/// packing() returns the copies from a local array of shape `shape` to a buffer that holds the
/// boxes one after another; unpacking() returns the reverse copies. Array and buffer are in the
/// same processor's memory.
std::vector<BoxCopy> packing(const Dims& shape, std::span<const Box> boxes, const std::byte* array,
                             std::byte* packed, std::size_t element_bytes);
std::vector<BoxCopy> unpacking(const Dims& shape, std::span<const Box> boxes,
                               const std::byte* packed, std::byte* array,
                               std::size_t element_bytes);

}  // namespace reprise::sim
