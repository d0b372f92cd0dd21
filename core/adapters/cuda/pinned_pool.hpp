#pragma once
// Pinned host memory that is used again: to pin it takes longer than to copy to it.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/adapters/cuda/cuda_memory.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// What is given back is kept for the next. All that is pinned is at most twice what was once given
/// out at a time: where a size is new, others go first. Used by several threads.
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  static std::shared_ptr<PinnedPool> create(int device);

  /// Whole pages. Keeps the pool alive. Errors as PinnedMemory's.
  StagingMemory take(std::size_t bytes);
  /// Does [first, first + bytes) lie in memory that is given out?
  bool holds(const std::byte* first, std::size_t bytes) const;

 private:
  struct Block {
    PinnedMemory memory;
    bool given = true;
  };
  using Blocks = std::map<const std::byte*, Block, std::less<>>;  ///< by their first byte

  explicit PinnedPool(int device) : device_(device) {}
  /// A spare block of that size, neither too small nor so large that another would miss it; else
  /// the end.
  Blocks::iterator spare(std::size_t bytes);
  /// Spare blocks that have to go before so much more is pinned.
  std::vector<PinnedMemory> make_room(std::size_t bytes);
  void give_back(const std::byte* first) noexcept;

  int device_;
  mutable std::mutex mutex_;
  Blocks blocks_;
  std::size_t pinned_bytes_ = 0;
  std::size_t given_bytes_ = 0;
  std::size_t given_bytes_max_ = 0;
};

}  // namespace reprise
