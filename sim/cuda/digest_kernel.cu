#include <algorithm>
#include <cstring>

#include "core/adapters/cuda/launch.cuh"
#include "core/geometry/block16.hpp"
#include "core/geometry/element_digest.hpp"
#include "sim/cuda/digest_kernel.hpp"

namespace reprise::sim {
namespace {

// The compiler is told to unroll the loops over what was loaded, so that it stays in registers, and
// no others, which would need more registers than there are.
#ifdef __CUDACC__
#define REPRISE_UNROLLED _Pragma("unroll")
#define REPRISE_AS_IT_IS _Pragma("unroll 1")
#else
#define REPRISE_UNROLLED
#define REPRISE_AS_IT_IS
#endif

constexpr unsigned kEveryLane = 0xffffffffU;
constexpr int kLanesOfWarp = 32;
/// A multiprocessor holds this many blocks at once. With more, the last wave would be half empty.
constexpr int kResidentBlocks = 4;
/// Loads of 16 bytes that a thread has on their way.
constexpr int kLoadsAtOnce = 4;
/// Most 16-byte blocks that one lane takes of a unit of work.
constexpr std::int64_t kBlocksPerLane = 32;
using Total = unsigned long long;  // CUDA's atomics accept this type, but not std::uint64_t

/// Rows of elements that follow one another in memory. Each is cut into units of the same number of
/// 16-byte blocks, and a few neighbouring lanes share a unit, so that a warp reads one range.
struct Rows {
  ElementMap starts;  ///< of the first element of each row
  const std::byte* data = nullptr;
  std::uint64_t key = 0;
  std::int64_t length = 0;          ///< elements of a row
  std::uint64_t position_step = 0;  ///< of one element: what its global index adds to the position
  std::int64_t units_per_row = 1;
  std::int64_t blocks_per_unit = 0;
  std::int32_t lanes = 1;  ///< a power of two, at most a warp
};

template <class Word>
__device__ Word word_of(const Block16& block, int i) {
  if constexpr (sizeof(Word) == kBlockBytes) {
    return {block.low, block.high};
  } else {
    constexpr int kPerHalf = 8 / sizeof(Word);
    const std::uint64_t half = i < kPerHalf ? block.low : block.high;
    return static_cast<Word>(half >> (i % kPerHalf * 8 * sizeof(Word) % 64));
  }
}

/// Returns the contribution of an element at a position, which is the key and the index in one.
template <class Word>
__device__ std::uint64_t contribution(std::uint64_t position, const Word& bits) {
  return element_digest(position, 0, bits);
}

template <class Word>
__device__ Word load_word(const std::byte* at) {
  Word word;
  std::memcpy(&word, __builtin_assume_aligned(at, alignof(Word)), sizeof word);
  return word;
}

/// Loads 16 bytes, which begin at a multiple of 16 unless one element has as many.
template <class Word>
__device__ Block16 load_elements(const std::byte* at) {
  if constexpr (sizeof(Word) == kBlockBytes) {
    const auto word = load_word<Word>(at);
    return {word.low, word.high};
  } else {
    return *reinterpret_cast<const Block16*>(at);
  }
}

/// Adds up a unit. Every position is the sum of the one before and a step.
template <class Word>
__device__ std::uint64_t digest_of_unit(const Rows& rows, std::int64_t unit, int lane) {
  constexpr int kPerBlock = kBlockBytes / static_cast<int>(sizeof(Word));
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(Word));
  const std::int64_t row = rows.units_per_row == 1 ? unit : unit / rows.units_per_row;
  const ElementPlace start = rows.starts.at(row);
  const std::byte* const first = rows.data + start.a * kWidth;
  const std::uint64_t position_of_row =
      rows.key + static_cast<std::uint64_t>(start.global) * kIndexStep;
  std::uint64_t sum = 0;
  const auto add_word = [&](std::int64_t i) {
    sum += contribution(position_of_row + static_cast<std::uint64_t>(i) * rows.position_step,
                        load_word<Word>(first + i * kWidth));
  };

  // Elements before the first multiple of 16 bytes.
  const std::int64_t gap = (kBlockBytes - lead_of(first)) % kBlockBytes / kWidth;
  const std::int64_t lead = gap < rows.length ? gap : rows.length;
  const std::int64_t blocks = (rows.length - lead) / kPerBlock;
  const std::int64_t begin = (unit - row * rows.units_per_row) * rows.blocks_per_unit;
  const std::int64_t end =
      begin + rows.blocks_per_unit < blocks ? begin + rows.blocks_per_unit : blocks;
  if (begin == 0) {
    REPRISE_AS_IT_IS
    for (std::int64_t i = lane; i < lead; i += rows.lanes) add_word(i);
    REPRISE_AS_IT_IS
    for (std::int64_t i = lead + blocks * kPerBlock + lane; i < rows.length; i += rows.lanes) {
      add_word(i);
    }
  }

  std::int64_t at = begin + lane;
  const std::byte* block = first + lead * kWidth + at * kBlockBytes;
  const std::int64_t block_step = rows.lanes * kBlockBytes;
  std::uint64_t position =
      position_of_row + static_cast<std::uint64_t>(lead + at * kPerBlock) * rows.position_step;
  const std::uint64_t stride =
      static_cast<std::uint64_t>(rows.lanes * kPerBlock) * rows.position_step;
  const auto add_block = [&](const Block16& elements) {
    std::uint64_t own = position;
    REPRISE_UNROLLED
    for (int i = 0; i < kPerBlock; ++i, own += rows.position_step) {
      sum += contribution(own, word_of<Word>(elements, i));
    }
    position += stride;
  };
  REPRISE_AS_IT_IS
  for (; at + (kLoadsAtOnce - 1) * rows.lanes < end; at += kLoadsAtOnce * rows.lanes) {
    Block16 loaded[kLoadsAtOnce];
    REPRISE_UNROLLED
    for (int i = 0; i < kLoadsAtOnce; ++i) {
      loaded[i] = load_elements<Word>(block + i * block_step);
    }
    REPRISE_UNROLLED
    for (int i = 0; i < kLoadsAtOnce; ++i) add_block(loaded[i]);
    block += kLoadsAtOnce * block_step;
  }
  REPRISE_AS_IT_IS
  for (; at < end; at += rows.lanes, block += block_step) add_block(load_elements<Word>(block));
  return sum;
}

template <class Word>
__global__ void __launch_bounds__(kThreadsPerBlock, kResidentBlocks)
    digest_kernel(std::int64_t units, const __grid_constant__ Rows rows, Total* total) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x / rows.lanes;
  const auto lane = static_cast<int>(thread % rows.lanes);
  std::uint64_t sum = 0;
  for (std::int64_t unit = thread / rows.lanes; unit < units; unit += step) {
    sum += digest_of_unit<Word>(rows, unit, lane);
  }
  // One addition per warp: one per thread on the same address would take as long as the reading.
  for (int ahead = kLanesOfWarp / 2; ahead > 0; ahead /= 2) {
    sum += __shfl_down_sync(kEveryLane, Total{sum}, ahead);
  }
  if (threadIdx.x % kLanesOfWarp == 0 && sum != 0) atomicAdd(total, Total{sum});
}

/// Takes the innermost loop as the row if its elements follow one another in memory. Otherwise each
/// element is a row.
Rows rows_of(const ElementMap& map, const std::byte* data, std::uint64_t key, std::int64_t width) {
  Rows rows{.starts = map, .data = data, .key = key, .length = 1, .position_step = kIndexStep};
  if (map.depth > 0 && map.loops[0].step.a == 1) {
    rows.length = map.loops[0].count;
    rows.position_step *= static_cast<std::uint64_t>(map.loops[0].step.global);
    rows.starts.elements = map.elements / rows.length;
    std::copy(map.loops.begin() + 1, map.loops.end(), rows.starts.loops.begin());
    --rows.starts.depth;
  }
  const std::int64_t blocks = std::max<std::int64_t>(rows.length * width / kBlockBytes, 1);
  while (rows.lanes < kLanesOfWarp && rows.lanes * 2 <= blocks) rows.lanes *= 2;
  rows.blocks_per_unit = rows.lanes * kBlocksPerLane;
  rows.units_per_row = (blocks + rows.blocks_per_unit - 1) / rows.blocks_per_unit;
  return rows;
}

}  // namespace

template <class Word>
void queue_digest(CudaStreamRef stream, const ElementMap& over, const ElementDigest<Word>& digest,
                  std::uint64_t* sum) {
  if (over.elements == 0) return;
  const Rows rows = rows_of(over, digest.data, digest.key, sizeof(Word));
  const std::int64_t units = rows.starts.elements * rows.units_per_row;
  const std::int64_t blocks = (units * rows.lanes + kThreadsPerBlock - 1) / kThreadsPerBlock;
  launch_blocks(stream,
                std::min(blocks, std::int64_t{processors_of(stream.device)} * kResidentBlocks),
                "a digest", digest_kernel<Word>, units, rows, reinterpret_cast<Total*>(sum));
}

template void queue_digest(CudaStreamRef, const ElementMap&, const ElementDigest<std::uint8_t>&,
                           std::uint64_t*);
template void queue_digest(CudaStreamRef, const ElementMap&, const ElementDigest<std::uint16_t>&,
                           std::uint64_t*);
template void queue_digest(CudaStreamRef, const ElementMap&, const ElementDigest<std::uint32_t>&,
                           std::uint64_t*);
template void queue_digest(CudaStreamRef, const ElementMap&, const ElementDigest<std::uint64_t>&,
                           std::uint64_t*);
template void queue_digest(CudaStreamRef, const ElementMap&, const ElementDigest<WideWord>&,
                           std::uint64_t*);

}  // namespace reprise::sim
