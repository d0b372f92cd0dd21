#include "core/adapters/cuda/cuda_compare.hpp"

#include <type_traits>

#include "core/adapters/cuda/kernel_result.hpp"
#include "core/adapters/cuda/launch.cuh"
#include "core/geometry/difference.hpp"

namespace reprise {
namespace {

constexpr unsigned kAllLanes = 0xffffffffU;
constexpr int kWarp = 32;

__device__ DifferenceSum from_lane(const DifferenceSum& mine, int ahead) {
  return {__shfl_down_sync(kAllLanes, mine.mismatches, ahead),
          __shfl_down_sync(kAllLanes, mine.delta_bits, ahead),
          __shfl_down_sync(kAllLanes, mine.first, ahead)};
}

/// Returns the warp's sum in its first lane.
__device__ DifferenceSum sum_of_warp(DifferenceSum sum) {
  for (int ahead = kWarp / 2; ahead > 0; ahead /= 2) sum.add(from_lane(sum, ahead));
  return sum;
}

using Word = unsigned long long;  // CUDA's atomics take no std::uint64_t
static_assert(sizeof(Word) == sizeof(std::uint64_t));

/// Merges `sum` into `total` with atomic operations, so the threads may call this in any order.
__device__ void add_to(DifferenceSum* total, const DifferenceSum& sum) {
  if (sum.mismatches == 0) return;
  atomicAdd(reinterpret_cast<Word*>(&total->mismatches), sum.mismatches);
  atomicMax(reinterpret_cast<Word*>(&total->delta_bits), sum.delta_bits);
  atomicMin(reinterpret_cast<Word*>(&total->first), sum.first);
}

template <class Body>
__global__ void compare_kernel(const __grid_constant__ Body body, DifferenceSum* total) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const DifferenceSum sum = sum_of_warp(body.sum_of(thread, std::int64_t{gridDim.x} * blockDim.x));
  if (threadIdx.x % kWarp == 0) add_to(total, sum);
}

}  // namespace

Comparison compare_on_device(CudaDevice& device, DType dtype, const std::byte* left,
                             const std::byte* right, std::int64_t elements) {
  if (elements == 0) return {};
  const CudaStreamRef stream = device.compute_stream();
  const auto bytes = elements * static_cast<std::int64_t>(size_of(dtype));
  auto* const total = device.result().begin(stream, DifferenceSum());
  with_value_of(dtype, [&](const auto& value, auto parts) {
    const CompareBlocks<parts(), std::decay_t<decltype(value)>> body{left, right, bytes, value};
    launch_blocks(stream, blocks_for(stream.device, body.blocks()), "comparison",
                  compare_kernel<std::decay_t<decltype(body)>>, body, total);
  });
  return comparison_of(device.result().end<DifferenceSum>(stream), elements);
}

}  // namespace reprise
