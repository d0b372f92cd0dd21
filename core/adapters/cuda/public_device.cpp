// Creates devices for programs outside this project.
#include <unistd.h>

#include <memory>

#include "core/adapters/cuda/cuda_device.hpp"
#include "reprise/device.hpp"

namespace reprise {

std::shared_ptr<Device> cuda_device(int index, void* stream) {
  char node[256] = "";
  static_cast<void>(gethostname(node, sizeof node - 1));
  return std::make_shared<CudaDevice>(node, CudaStreamRef{stream, index});
}

}  // namespace reprise
