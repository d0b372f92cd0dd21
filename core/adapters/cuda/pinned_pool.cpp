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

std::size_t whole_grains(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kGrain - 1) / kGrain) * kGrain;
}

}  // namespace

std::shared_ptr<PinnedPool> PinnedPool::create(int device) {
  return std::shared_ptr<PinnedPool>(new PinnedPool(device));
}

StagingMemory PinnedPool::take(std::size_t bytes) {
  const std::size_t size = whole_grains(bytes);
  std::vector<PinnedMemory> stale;  // freed after the lock is released, because freeing is slow
  const std::scoped_lock lock(mutex_);
  Gap gap = gap_for(size);
  if (gap.block == nullptr) {
    stale = make_room(size);
    gap = {&pin(size), 0, size};
  }
  return give(gap, size);
}

StagingMemory PinnedPool::take_kept(std::size_t bytes) {
  const std::size_t size = whole_grains(bytes);
  const std::scoped_lock lock(mutex_);
  const Gap gap = gap_for(size);
  return gap.block == nullptr ? StagingMemory() : give(gap, size);
}

/// Gives the begin of a gap; needs the lock.
StagingMemory PinnedPool::give(const Gap& gap, std::size_t bytes) {
  gap.block->given[gap.offset] = bytes;
  given_bytes_ += bytes;
  given_bytes_max_ = std::max(given_bytes_max_, given_bytes_);
  return {gap.block->memory.data() + gap.offset,
          [pool = shared_from_this()](const std::byte* given) { pool->give_back(given); }};
}

void PinnedPool::reserve(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const std::size_t size = whole_grains(bytes);
  if (gap_for(size).block == nullptr) pin(size);
  given_bytes_max_ = std::max(given_bytes_max_, given_bytes_ + size);
}

PinnedPool::Block& PinnedPool::pin(std::size_t bytes) {
  PinnedMemory memory(device_, bytes);
  pinned_bytes_ += bytes;
  const std::byte* const at = memory.data();
  return blocks_.emplace(at, Block{std::move(memory)}).first->second;
}

PinnedPool::Gap PinnedPool::gap_for(std::size_t bytes) {
  Gap best;
  const auto look_at = [&](Block& block, std::size_t begin, std::size_t end) {
    if (end - begin < bytes || (best.block != nullptr && best.bytes <= end - begin)) return;
    best = {&block, begin, end - begin};
  };
  for (auto& [first, block] : blocks_) {
    std::size_t begin = 0;
    for (const auto& [offset, size] : block.given) {
      look_at(block, begin, offset);
      begin = offset + size;
    }
    look_at(block, begin, block.memory.size());
  }
  return best;
}

std::vector<PinnedMemory> PinnedPool::make_room(std::size_t bytes) {
  const std::size_t most = kKept * std::max(given_bytes_max_, given_bytes_ + bytes);
  std::vector<PinnedMemory> stale;
  for (auto block = blocks_.begin(); block != blocks_.end() && pinned_bytes_ + bytes > most;) {
    if (!block->second.given.empty()) {
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
  Block& block = std::prev(blocks_.upper_bound(first))->second;
  const auto part = block.given.find(static_cast<std::size_t>(first - block.memory.data()));
  given_bytes_ -= part->second;
  block.given.erase(part);
}

bool PinnedPool::holds(const std::byte* first, std::size_t bytes) const {
  const std::scoped_lock lock(mutex_);
  const auto after = blocks_.upper_bound(first);
  if (after == blocks_.begin()) return false;
  const Block& block = std::prev(after)->second;
  const std::byte* const begin = block.memory.data();
  if (first >= begin + block.memory.size()) return false;
  const auto offset = static_cast<std::size_t>(first - begin);
  const auto next = block.given.upper_bound(offset);
  if (next == block.given.begin()) return false;
  const auto& [at, size] = *std::prev(next);
  return offset + bytes <= at + size;
}

}  // namespace reprise
