#pragma once
// Queues the work of a job on elements of a GPU.

#include <span>

#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/geometry/strided_copy.hpp"
#include "sim/job/element_work.hpp"

namespace reprise::sim {

/// Both sides are the device's memory.
void queue_copy(CudaStreamRef stream, const StridedCopy& copy);
/// On each element of the map, in no order.
void queue_work(CudaStreamRef stream, const ElementMap& over, const ElementWork& work);
/// Adds to `sums`, at an address of the device.
void queue_sum(CudaStreamRef stream, const ElementMap& over, const ElementTerm& term, Sums* sums);
/// `found`, at an address of the device, becomes `before` and the ordinal of the first stale
/// element if that is less.
void queue_search(CudaStreamRef stream, const ElementMap& over, const StaleWeight& stale,
                  std::int64_t before, std::int64_t* found);

}  // namespace reprise::sim
