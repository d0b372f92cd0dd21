#pragma once
// A GPU as the processor of a job.

#include <memory>

#include "core/adapters/cuda/cuda_device.hpp"
#include "sim/job/processor.hpp"

namespace reprise::sim {

/// All work is queued on the device's compute stream, so the device's copies come after what was
/// computed before them, and what is computed after a scatter comes after it. The device is
/// borrowed and used by the same thread. UNSUPPORTED if built without CUDA; NO_SPACE where
/// allocate() finds the GPU full.
std::unique_ptr<Processor> make_cuda_processor(CudaDevice& device);

}  // namespace reprise::sim
