#pragma once
// Makes a GPU the processor of a job.

#include <memory>

#include "core/adapters/cuda/cuda_device.hpp"
#include "sim/job/model/processor.hpp"

namespace reprise::sim {

/// Queues all work on the device's compute stream, so the device's copies come after earlier
/// computation, and computation that follows a scatter comes after it. Borrows the device, which
/// the same thread must use. UNSUPPORTED if built without CUDA; NO_SPACE if allocate() finds the
/// GPU full.
std::unique_ptr<Processor> make_cuda_processor(CudaDevice& device);

}  // namespace reprise::sim
