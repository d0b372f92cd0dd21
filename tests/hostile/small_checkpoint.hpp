#pragma once
// A checkpoint of 64 KiB that the engine itself saved and committed, on two ranks.

#include "core/save/image_writer.hpp"
#include "tests/hostile/memory_tree.hpp"

namespace reprise::test {

inline constexpr std::uint64_t kSmallCheckpointBytes = std::uint64_t{64} << 10U;
/// The checkpoint's path in the tree: a root with a tracker.
inline constexpr const char* kSmallCheckpoint = "run";

/// Returns files of kSmallCheckpointBytes bytes in total: tensors whole and in two parts, an object
/// of each rank, common state, tracker; with Checksums::kCrc32AndSha256 also integrity.json.
MemoryTree small_checkpoint(Checksums checksums);

/// Returns the tree with 0 for every checksum in its archives, as torch writes them on request.
MemoryTree without_checksums(MemoryTree tree);

/// Part of a file: "elements", "zip headers", ... Regions are in order and without gaps.
struct Region {
  std::uint64_t end = 0;  ///< exclusive; the region begins at the end of the previous one
  const char* name = "";
};
/// Returns the regions of each file, by path.
std::map<std::string, std::vector<Region>> regions_of(MemoryTree& tree, const std::string& path);

}  // namespace reprise::test
