// The adapter where there is no CUDA.
#include "core/adapters/cuda/cuda_device.hpp"

namespace reprise {

std::vector<std::string> cuda_devices() { return {}; }

std::string cuda_version() { return {}; }

}  // namespace reprise
