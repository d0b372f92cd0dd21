#pragma once
// Parses metadata files once that several readers in one process have: the judges, which look at
// the same few checkpoints again and again, and the ranks of a simulated job.

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "core/checkpoint/checkpoint.hpp"
#include "core/format/tensor_frames.hpp"
#include "reprise/store.hpp"

namespace reprise {

/// Keeps what metadata files say, by their names and bytes; one object serves all scenarios of a
/// process. Thread-safe. It only saves work: what it returns depends on the files alone.
class ParsedMetadata {
 public:
  /// Keeps the metadata of at most kKept checkpoints, those that were opened last, and of no more
  /// than `bytes_max` bytes of files in all. What was parsed takes a few times as much.
  explicit ParsedMetadata(std::uint64_t bytes_max = kBytesKept) : bytes_max_(bytes_max) {}

  /// The same as Checkpoint::open(), with the same calls of the store.
  Checkpoint open(Store& store, const std::string& path);

  /// Returns what the files say; `hash` is that of their names and contents, see hash_of(). Throws
  /// the same errors as read_metadata(), each time.
  std::shared_ptr<const Metadata> read(std::span<const ByteSpan> contents,
                                       std::span<const std::string> names, std::uint64_t hash);

  /// Frames of the items of all these checkpoints, and of others.
  TensorFrames& frames() { return frames_; }

  static constexpr std::size_t kKept = 64;
  static constexpr std::uint64_t kBytesKept = std::uint64_t{64} << 20U;

 private:
  struct Known {
    std::uint64_t hash = 0;
    MetadataFiles files;
    std::shared_ptr<const Metadata> metadata;

    std::uint64_t bytes() const;  ///< size of the files
    bool is_of(std::span<const ByteSpan> contents, std::span<const std::string> names) const;
  };
  std::shared_ptr<const Metadata> known(std::span<const ByteSpan> contents,
                                        std::span<const std::string> names, std::uint64_t hash);

  std::uint64_t bytes_max_;
  std::mutex mutex_;
  std::list<Known> known_;   ///< latest use first
  std::uint64_t bytes_ = 0;  ///< of the files of all known
  TensorFrames frames_;
};

}  // namespace reprise
