#pragma once
// A checkpoint of 64 KiB that the engine itself saved and committed on two ranks.

#include "core/save/image_writer.hpp"
#include "tests/hostile/memory_tree.hpp"

namespace reprise::test {

inline constexpr std::uint64_t kSmallCheckpointBytes = std::uint64_t{64} << 10U;
/// The path of the checkpoints' root in the tree. The root contains a tracker.
inline constexpr const char* kSmallCheckpoint = "run";

/// Returns a checkpoint whose files have kSmallCheckpointBytes bytes in total: tensors of one chunk
/// and of two chunks, one object for each rank, the common state, and the tracker. With
/// Checksums::kCrc32AndSha256, integrity.json is one of the files.
MemoryTree small_checkpoint(Checksums checksums);

/// Returns the tree with every checksum in the archives replaced by 0. Torch writes such files if
/// checksums are switched off.
MemoryTree without_checksums(MemoryTree tree);

/// A part of a file, such as "elements" or "zip headers". The regions of a file are listed in
/// order, without gaps.
struct Region {
  std::uint64_t end = 0;  ///< exclusive; the region begins where the one before it ends
  const char* name = "";
};
/// Returns the regions of each file, by path.
std::map<std::string, std::vector<Region>> regions_of(MemoryTree& tree, const std::string& path);

}  // namespace reprise::test
