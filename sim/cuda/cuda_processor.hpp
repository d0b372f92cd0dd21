#pragma once
// Processes the elements of a job's tensors on a GPU.

#include <memory>

#include "core/adapters/cuda/cuda_device.hpp"
#include "sim/job/model/processor.hpp"

namespace reprise::sim {

/// Returns a processor that queues all work on the device's compute stream. Copies by the device
/// therefore run after earlier computation, and computation queued after a scatter runs after that
/// scatter. Borrows the device; only one thread may use both. Throws UNSUPPORTED if built without
/// CUDA; allocate() throws NO_SPACE if the GPU's memory is full.
std::unique_ptr<Processor> make_cuda_processor(CudaDevice& device);

}  // namespace reprise::sim
