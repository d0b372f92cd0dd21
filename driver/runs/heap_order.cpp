#include "driver/runs/heap_order.hpp"

#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/random.hpp"

namespace reprise::driver {
namespace {

constexpr std::size_t kBlocks = 20'000;
constexpr std::uint64_t kBlockBytesMax = 1024;

}  // namespace

void shake_heap(std::uint64_t seed) {
  using Block = std::unique_ptr<std::byte[]>;
  static std::vector<Block> kept;
  Stream stream = Stream(seed).split("heap");
  std::vector<Block> blocks(kBlocks);
  for (auto& block : blocks) {
    block = std::make_unique_for_overwrite<std::byte[]>(1 + stream.below(kBlockBytesMax));
  }
  for (std::size_t i = kBlocks; i > 1; --i) std::swap(blocks[i - 1], blocks[stream.below(i)]);
  const auto middle = blocks.begin() + kBlocks / 2;
  kept.insert(kept.end(), std::make_move_iterator(middle), std::make_move_iterator(blocks.end()));
  for (auto block = blocks.begin(); block != middle; ++block) block->reset();
}

}  // namespace reprise::driver
