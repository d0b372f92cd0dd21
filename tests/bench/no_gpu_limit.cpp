// Never reached: without CUDA there is no device.
#include "reprise/error.hpp"
#include "tests/bench/gpu_limit.hpp"

namespace reprise::bench {

std::uint64_t sum_of_two_on_device(CudaDevice& /*device*/, ByteSpan /*a*/, ByteSpan /*b*/) {
  throw Error(Code::kUnsupported, "built without CUDA");
}

}  // namespace reprise::bench
