// Replaces the CUDA processor in builds without CUDA.
#include "reprise/error.hpp"
#include "sim/cuda/cuda_processor.hpp"

namespace reprise::sim {

std::unique_ptr<Processor> make_cuda_processor(CudaDevice& /*device*/) {
  throw Error(Code::kUnsupported,
              "built without CUDA; install its toolkit with nvcc and build again");
}

}  // namespace reprise::sim
