#pragma once
// Memory limits and checksum choices for the writers of a save.

#include <cstdint>

#include "reprise/save.hpp"

namespace reprise {

/// Staging for a blocking save: enough to keep caller and background both busy, small enough for a
/// cache that they share.
inline constexpr std::uint64_t kBlockingStaging = std::uint64_t{8} << 20U;

struct ImageOptions {
  /// Up to this much, the caller need not wait for the background.
  std::uint64_t staging_bytes_max = std::uint64_t{256} << 20U;
  std::uint64_t batch_bytes = std::uint64_t{1} << 20U;
  Checksums checksums = Checksums::kCrc32;
};

/// Returns `options` with batches of at least `least` bytes, if staging still has room for four.
ImageOptions with_batches_of(std::uint64_t least, ImageOptions options);

}  // namespace reprise
