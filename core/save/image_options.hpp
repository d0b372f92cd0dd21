#pragma once
// Memory limits and checksum choices for the writers of a save.

#include <cstdint>

#include "reprise/save.hpp"

namespace reprise {

struct ImageOptions {
  /// Limit on staging. A caller whose data fits into it does not wait for background tasks.
  std::uint64_t staging_bytes_max = std::uint64_t{256} << 20U;
  std::uint64_t batch_bytes = std::uint64_t{1} << 20U;
  Checksums checksums = Checksums::kCrc32;
  /// kWhenQueued has an effect only if the data fits into staging.
  BeginReturns returns = BeginReturns::kWhenCopied;
  /// A save decides if an older checkpoint goes. A writer by itself reads back only with kAlways.
  ReadBack read_back = ReadBack::kBeforeOlderGoes;
};

/// Returns `options` with the batch size raised to `least` bytes if it is smaller. Does not raise
/// it above a quarter of staging.
ImageOptions with_batches_of(std::uint64_t least, ImageOptions options);

}  // namespace reprise
