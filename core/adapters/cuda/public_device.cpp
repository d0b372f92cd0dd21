// Creates devices for programs outside this project.
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "core/adapters/cuda/cuda_device.hpp"
#include "reprise/device.hpp"

namespace reprise {

std::shared_ptr<Device> cuda_device(int index, void* stream, std::chrono::nanoseconds deadline) {
  char node[256] = "";
  static_cast<void>(gethostname(node, sizeof node - 1));
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(deadline.count(), 0));
  return std::make_shared<CudaDevice>(node, CudaStreamRef{stream, index},
                                      CudaPatience{.deadline_ns = ns});
}

}  // namespace reprise
