#pragma once
// Queues operations on tensor elements in GPU memory.

#include <span>

#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/geometry/strided_copy.hpp"
#include "sim/job/model/element_work.hpp"

namespace reprise::sim {

/// Copies elements within device memory.
void queue_copy(CudaStreamRef stream, const StridedCopy& copy);
/// Applies the work to each element of the map, in any order.
void queue_work(CudaStreamRef stream, const ElementMap& over, const ElementWork& work);
/// Adds the term of each element to `sums`, which is in device memory.
void queue_sum(CudaStreamRef stream, const ElementMap& over, const ElementTerm& term, Sums* sums);
/// Lowers `found`, which is in device memory, to `before` plus the ordinal of the first stale
/// element. Leaves `found` unchanged if it is already lower, or if no element is stale.
void queue_search(CudaStreamRef stream, const ElementMap& over, const StaleWeight& stale,
                  std::int64_t before, std::int64_t* found);

}  // namespace reprise::sim
