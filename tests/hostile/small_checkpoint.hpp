#pragma once
// A checkpoint of 64 KiB that the engine itself saved and committed on two ranks.

#include "core/save/image_writer.hpp"
#include "tests/hostile/memory_tree.hpp"

namespace reprise::test {

inline constexpr std::uint64_t kSmallCheckpointBytes = std::uint64_t{64} << 10U;
/// The path of the checkpoint in the tree, which is a root with a tracker.
inline constexpr const char* kSmallCheckpoint = "run";

/// Returns files of kSmallCheckpointBytes bytes in total: tensors in one part and in two parts, an
/// object of each rank, the common state, and the tracker. With Checksums::kCrc32AndSha256 there is
/// also an integrity.json.
MemoryTree small_checkpoint(Checksums checksums);

/// Returns the tree with 0 for every checksum in its archives. Torch writes such files when
/// checksums are switched off.
MemoryTree without_checksums(MemoryTree tree);

/// Part of a file: "elements", "zip headers", ... A file's regions are in order and have no gaps
/// between them.
struct Region {
  std::uint64_t end = 0;  ///< exclusive; the region begins where the one before it ends
  const char* name = "";
};
/// Returns the regions of each file, by path.
std::map<std::string, std::vector<Region>> regions_of(MemoryTree& tree, const std::string& path);

}  // namespace reprise::test
