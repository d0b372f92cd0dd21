#include "core/adapters/cuda/pinned_pool.hpp"

#include <algorithm>
#include <utility>

namespace reprise {
namespace {

/// Sizes are rounded up to multiples of this, so that blocks can be reused.
constexpr std::size_t kGrain = std::size_t{64} << 10U;
/// Limit on pinned memory, as a multiple of the largest amount that was ever in use at one time.
/// The factor is 2, because saves and loads request different sizes.
constexpr std::size_t kKept = 2;

}  // namespace

std::shared_ptr<PinnedPool> PinnedPool::create(int device) {
  return std::shared_ptr<PinnedPool>(new PinnedPool(device));
}

StagingMemory PinnedPool::take(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(1, (bytes + kGrain - 1) / kGrain) * kGrain;
  std::vector<PinnedMemory> stale;  // freed after the lock is released, because freeing is slow
  std::byte* first = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    auto found = spare(size);
    if (found == blocks_.end()) {
      stale = make_room(size);
      PinnedMemory memory(device_, size);
      pinned_bytes_ += size;
      const std::byte* const at = memory.data();
      found = blocks_.emplace(at, Block{std::move(memory)}).first;
    }
    found->second.given = true;
    first = found->second.memory.data();
    given_bytes_ += found->second.memory.size();
    given_bytes_max_ = std::max(given_bytes_max_, given_bytes_);
  }
  return {first, [pool = shared_from_this()](const std::byte* given) { pool->give_back(given); }};
}

PinnedPool::Blocks::iterator PinnedPool::spare(std::size_t bytes) {
  auto best = blocks_.end();
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    const std::size_t size = block->second.memory.size();
    if (block->second.given || size < bytes || size / 2 > bytes) continue;
    if (best == blocks_.end() || size < best->second.memory.size()) best = block;
  }
  return best;
}

std::vector<PinnedMemory> PinnedPool::make_room(std::size_t bytes) {
  const std::size_t most = kKept * std::max(given_bytes_max_, given_bytes_ + bytes);
  std::vector<PinnedMemory> stale;
  for (auto block = blocks_.begin(); block != blocks_.end() && pinned_bytes_ + bytes > most;) {
    if (block->second.given) {
      ++block;
      continue;
    }
    pinned_bytes_ -= block->second.memory.size();
    stale.push_back(std::move(block->second.memory));
    block = blocks_.erase(block);
  }
  return stale;
}

void PinnedPool::give_back(const std::byte* first) noexcept {
  const std::scoped_lock lock(mutex_);
  Block& block = blocks_.find(first)->second;
  given_bytes_ -= block.memory.size();
  block.given = false;
}

bool PinnedPool::holds(const std::byte* first, std::size_t bytes) const {
  const std::scoped_lock lock(mutex_);
  const auto after = blocks_.upper_bound(first);
  if (after == blocks_.begin()) return false;
  const Block& block = std::prev(after)->second;
  return block.given && first + bytes <= block.memory.data() + block.memory.size();
}

}  // namespace reprise
