#pragma once
// What a save's writers may hold, and which checksums they make.

#include <cstdint>

#include "reprise/save.hpp"

namespace reprise {

/// Staging for a save that is waited for: what the caller and the background need to keep each
/// other busy, in a cache that both share.
inline constexpr std::uint64_t kBlockingStaging = std::uint64_t{8} << 20U;

struct ImageOptions {
  /// As far as it goes, the caller need not wait for the background.
  std::uint64_t staging_bytes_max = std::uint64_t{256} << 20U;
  std::uint64_t batch_bytes = std::uint64_t{1} << 20U;
  Checksums checksums = Checksums::kCrc32;
};

/// The same with batches of at least `least` bytes, as far as staging has room for four of them.
ImageOptions with_batches_of(std::uint64_t least, ImageOptions options);

}  // namespace reprise
