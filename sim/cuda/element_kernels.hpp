#pragma once
// Queues the job's work on elements in the memory of a GPU.

#include <span>

#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/geometry/strided_copy.hpp"
#include "sim/job/model/element_work.hpp"

namespace reprise::sim {

/// Source and target are both in device memory.
void queue_copy(CudaStreamRef stream, const StridedCopy& copy);
/// Applies the work to each element of the map, in any order.
void queue_work(CudaStreamRef stream, const ElementMap& over, const ElementWork& work);
/// Adds to `sums`, which is in device memory.
void queue_sum(CudaStreamRef stream, const ElementMap& over, const ElementTerm& term, Sums* sums);
/// Sets `found`, in device memory, to `before` plus the ordinal of the first stale element, unless
/// it is already less.
void queue_search(CudaStreamRef stream, const ElementMap& over, const StaleWeight& stale,
                  std::int64_t before, std::int64_t* found);

}  // namespace reprise::sim
