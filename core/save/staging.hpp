#pragma once
// Computes the size of the read buffer that a load uses in addition to the job's own memory.

#include <cstdint>

namespace reprise {

/// The byte counts from which the size of a read buffer is computed.
struct StagingNeed {
  std::uint64_t largest = 0;       ///< bytes needed to read the largest item whole
  std::uint64_t all = 0;           ///< total size of all reads
  std::uint64_t most = 0;          ///< upper limit given by the caller
  std::uint64_t joined = 0;        ///< adjacent items of at most this many bytes are read together,
  std::uint64_t joined_items = 1;  ///< if they are at most so many
  /// Number of reads whose bytes may be in staging at once: on a device, half are
  /// read while others are copied.
  std::uint64_t reads = 8;
  std::uint64_t readers = 1;  ///< number of reads that may be on their way at once
};

/// One read may use at least this many bytes, if the caller's limit allows.
inline constexpr std::uint64_t kShareMin = 4096;

/// An item of at most this many bytes is read whole and parsed from memory. When a larger item is
/// parsed, its elements and at most this many other bytes are in memory.
inline constexpr std::uint64_t kParsedAtOnce = 8192;

/// Limit on the memory that a save or load uses on a rank that holds no tensor data except
/// single-element tensors. It has room for one small record and its parsed form, and does not
/// depend on the tensors of other ranks. Objects and the job's own memory are not included.
inline constexpr std::uint64_t kEmptyRankBytes = 2 * kParsedAtOnce;

}  // namespace reprise
