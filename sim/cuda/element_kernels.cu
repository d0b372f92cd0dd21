#include "core/adapters/cuda/launch.cuh"
#include "sim/cuda/digest_kernel.hpp"
#include "sim/cuda/element_kernels.hpp"

namespace reprise::sim {
namespace {

constexpr unsigned kAllLanes = 0xffffffffU;
constexpr int kWarp = 32;
using Word = unsigned long long;  // CUDA's atomics accept this type, but not std::uint64_t
static_assert(sizeof(Word) == sizeof(std::uint64_t));

__device__ std::int64_t own_index() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::int64_t all_threads() { return std::int64_t{gridDim.x} * blockDim.x; }

template <class Work>
__global__ void work_kernel(const __grid_constant__ ElementMap map,
                            const __grid_constant__ Work work) {
  for (std::int64_t i = own_index(); i < map.elements; i += all_threads()) work(map.at(i));
}

/// Adds up the sums of a warp's lanes. Only the first lane gets the result.
__device__ Sums sums_of_warp(Sums sums) {
  for (int ahead = kWarp / 2; ahead > 0; ahead /= 2) {
    for (auto& value : sums.values) value += __shfl_down_sync(kAllLanes, Word{value}, ahead);
  }
  return sums;
}

/// The terms are integers, so the sums do not depend on the order of the additions.
template <class Term>
__global__ void sum_kernel(const __grid_constant__ ElementMap map,
                           const __grid_constant__ Term term, Sums* total) {
  Sums sums;
  for (std::int64_t i = own_index(); i < map.elements; i += all_threads()) sums += term(map.at(i));
  sums = sums_of_warp(sums);
  if (threadIdx.x % kWarp != 0) return;
  for (int i = 0; i < Sums::kCount; ++i) {
    if (sums.values[i] == 0) continue;
    atomicAdd(reinterpret_cast<Word*>(&total->values[i]), Word{sums.values[i]});
  }
}

__global__ void search_kernel(const __grid_constant__ ElementMap map,
                              const __grid_constant__ StaleWeight stale, std::int64_t before,
                              std::int64_t* found) {
  for (std::int64_t i = own_index(); i < map.elements; i += all_threads()) {
    if (!stale(map.at(i))) continue;
    atomicMin(reinterpret_cast<long long*>(found), static_cast<long long>(before + i));
    return;  // only the smallest index matters, and this thread's other indices are larger
  }
}

/// Performs part number `part` of a copy.
struct CopyPart {
  StridedCopy copy;
  REPRISE_HD void operator()(std::int64_t part) const { move_part(copy, part); }
};

template <class Term>
void queue_term(CudaStreamRef stream, const ElementMap& over, const Term& term, Sums* sums) {
  launch_blocks(stream, blocks_for(stream.device, over.elements), "a sum over elements",
                sum_kernel<Term>, over, term, sums);
}
template <class Word>
void queue_term(CudaStreamRef stream, const ElementMap& over, const DigestTerm<Word>& term,
                Sums* sums) {
  queue_digest(stream, over, term.digest, &sums->values[0]);
}

}  // namespace

void queue_copy(CudaStreamRef stream, const StridedCopy& copy) {
  launch(stream, copy.parts(), CopyPart{copy});
}

void queue_work(CudaStreamRef stream, const ElementMap& over, const ElementWork& work) {
  if (over.elements == 0) return;
  const std::int64_t blocks = blocks_for(stream.device, over.elements);
  std::visit(
      [&](const auto& one) {
        launch_blocks(stream, blocks, "work on elements", work_kernel<std::decay_t<decltype(one)>>,
                      over, one);
      },
      work);
}

void queue_sum(CudaStreamRef stream, const ElementMap& over, const ElementTerm& term, Sums* sums) {
  if (over.elements == 0) return;
  std::visit([&](const auto& one) { queue_term(stream, over, one, sums); }, term);
}

void queue_search(CudaStreamRef stream, const ElementMap& over, const StaleWeight& stale,
                  std::int64_t before, std::int64_t* found) {
  if (over.elements == 0) return;
  launch_blocks(stream, blocks_for(stream.device, over.elements), "a search of elements",
                search_kernel, over, stale, before, found);
}

}  // namespace reprise::sim
