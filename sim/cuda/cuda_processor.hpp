#pragma once
// A job's processor that works on a GPU.

#include <memory>

#include "core/adapters/cuda/cuda_device.hpp"
#include "sim/job/model/processor.hpp"

namespace reprise::sim {

/// Queues all work on the device's compute stream. So copies by the device run after earlier
/// computation, and computation queued after a scatter runs after the scatter. Borrows the device,
/// which must be used by the same thread. Throws UNSUPPORTED if built without CUDA; allocate()
/// throws NO_SPACE if the GPU's memory is full.
std::unique_ptr<Processor> make_cuda_processor(CudaDevice& device);

}  // namespace reprise::sim
