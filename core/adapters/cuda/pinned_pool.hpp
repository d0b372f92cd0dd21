#pragma once
// Reuses pinned host memory, because pinning takes longer than copying to it.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/adapters/cuda/cuda_memory.hpp"
#include "reprise/device.hpp"

namespace reprise {

/// Keeps returned memory for reuse. Pins at most twice the largest amount that was ever in use or
/// reserved at one time, apart from gaps that are too small for a request. If a request would
/// exceed that limit, the pool frees blocks that are unused. Several threads may use a pool.
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  static std::shared_ptr<PinnedPool> create(int device);

  /// Returns at least `bytes` bytes, as whole pages. The pool lives at least until the memory is
  /// returned to it. Throws the same errors as PinnedMemory.
  StagingMemory take(std::size_t bytes);
  /// The same from memory that is pinned already; null if no gap is large enough. Calls nothing of
  /// CUDA.
  StagingMemory take_kept(std::size_t bytes);
  /// Pins a block from which later requests of at most `bytes` bytes in all are served.
  void reserve(std::size_t bytes);
  /// True if [first, first + bytes) lies in memory that is in use.
  bool holds(const std::byte* first, std::size_t bytes) const;

 private:
  /// Pinned memory that is given in parts.
  struct Block {
    PinnedMemory memory;
    std::map<std::size_t, std::size_t> given = {};  ///< size of each part in use, by its offset
  };
  struct Gap {
    Block* block = nullptr;
    std::size_t offset = 0;
    std::size_t bytes = 0;
  };
  using Blocks = std::map<const std::byte*, Block, std::less<>>;  ///< by address of first byte

  explicit PinnedPool(int device) : device_(device) {}
  /// Returns the smallest gap of at least `bytes` bytes; one without a block if there is none.
  Gap gap_for(std::size_t bytes);
  Block& pin(std::size_t bytes);
  StagingMemory give(const Gap& gap, std::size_t bytes);
  /// Removes the unused blocks that must be freed before `bytes` more bytes are pinned, and returns
  /// them.
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
