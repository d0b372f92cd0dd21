// Replaces gpu_limit.cu in builds without CUDA. Never called, since such builds have no device.
#include "reprise/error.hpp"
#include "tests/bench/gpu_limit.hpp"

namespace reprise::bench {

std::uint64_t sum_of_two_on_device(CudaDevice& /*device*/, ByteSpan /*a*/, ByteSpan /*b*/) {
  throw Error(Code::kUnsupported, "built without CUDA");
}

}  // namespace reprise::bench
