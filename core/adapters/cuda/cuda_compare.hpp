#pragma once
// Comparison where the elements are: on a GPU.

#include <cstddef>
#include <cstdint>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/geometry/compare.hpp"

namespace reprise {

/// As compare_elements(), of elements that the device reaches. In one pass, after what the compute
/// stream had queued; blocks until it is done. UNSUPPORTED if built without CUDA.
Comparison compare_on_device(CudaDevice& device, DType dtype, const std::byte* left,
                             const std::byte* right, std::int64_t elements);

}  // namespace reprise
