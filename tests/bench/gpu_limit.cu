#include "tests/bench/gpu_limit.hpp"

#include "core/adapters/cuda/kernel_result.hpp"
#include "core/adapters/cuda/launch.cuh"
#include "core/geometry/block16.hpp"

namespace reprise::bench {
namespace {

using Word = unsigned long long;
constexpr unsigned kAllLanes = 0xffffffffU;
constexpr int kWarp = 32;

__global__ void sum_kernel(const Block16* a, const Block16* b, std::int64_t blocks, Word* total) {
  constexpr int kAtOnce = 4;
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  std::uint64_t sum = 0;
  for (; at + (kAtOnce - 1) * threads < blocks; at += kAtOnce * threads) {
    for (int k = 0; k < kAtOnce; ++k) {
      const Block16 left = a[at + k * threads];
      const Block16 right = b[at + k * threads];
      sum += left.low + left.high + right.low + right.high;
    }
  }
  for (; at < blocks; at += threads) sum += a[at].low + a[at].high + b[at].low + b[at].high;
  // One addition per warp: one per thread on the same address would take as long as the reading.
  for (int ahead = kWarp / 2; ahead > 0; ahead /= 2) {
    sum += __shfl_down_sync(kAllLanes, Word{sum}, ahead);
  }
  if (threadIdx.x % kWarp == 0) atomicAdd(total, sum);
}

}  // namespace

std::uint64_t sum_of_two_on_device(CudaDevice& device, ByteSpan a, ByteSpan b) {
  const CudaStreamRef stream = device.compute_stream();
  const auto blocks = static_cast<std::int64_t>(a.size()) / kBlockBytes;
  auto* const total = device.result().begin(stream, Word{0});
  launch_blocks(stream, blocks_for(stream.device, blocks), "sum", sum_kernel,
                reinterpret_cast<const Block16*>(a.data()),
                reinterpret_cast<const Block16*>(b.data()), blocks, total);
  return device.result().end<Word>(stream);
}

}  // namespace reprise::bench
