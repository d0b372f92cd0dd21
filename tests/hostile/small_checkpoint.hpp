#pragma once
// A checkpoint of 64 KiB that the engine itself saved and committed, on two ranks.

#include "core/engine/image_writer.hpp"
#include "tests/hostile/memory_tree.hpp"

namespace reprise::test {

inline constexpr std::uint64_t kSmallCheckpointBytes = std::uint64_t{64} << 10U;
/// Where it lies in its tree: a root with a tracker.
inline constexpr const char* kSmallCheckpoint = "run";

/// All files together have kSmallCheckpointBytes bytes: tensors whole and in two parts, one object
/// of each rank, common state, tracker; integrity.json with Checksums::kCrc32AndSha256.
MemoryTree small_checkpoint(Checksums checksums);

/// The tree with 0 for every checksum in its archives, as torch writes them on request.
MemoryTree without_checksums(MemoryTree tree);

/// Which part of a file a byte belongs to: "elements", "zip headers", ... In order, without gaps.
struct Region {
  std::uint64_t end = 0;  ///< begins where the one before ends
  const char* name = "";
};
/// By path.
std::map<std::string, std::vector<Region>> regions_of(MemoryTree& tree, const std::string& path);

}  // namespace reprise::test
