#pragma once
// The same content under another sharding. Tensors are read and written in bounded steps; objects,
// the common state and what stands beside the payload are copied byte for byte, but for checksums
// that their writer left out.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/engine/checkpoint.hpp"
#include "core/engine/commit.hpp"
#include "core/engine/finding.hpp"
#include "core/engine/image_writer.hpp"
#include "core/engine/rank_values.hpp"
#include "reprise/device.hpp"
#include "reprise/inspect.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// How a tensor is cut anew: dimension `dim` into `parts` by the ceil-chunk rule.
struct Cut {
  std::size_t dim = 0;
  std::int64_t parts = 1;
};

/// What to do with a tensor (its key and logical shape): a cut, or nothing: it keeps its boxes.
using CutRule = std::function<std::optional<Cut>(const std::string& key, const Dims& shape)>;

/// What one writer writes; each list in the order of the catalog.
struct WriterShare {
  struct Part {
    std::uint32_t tensor = 0;  ///< index into Catalog::tensors
    Box box;                   ///< of the logical tensor
  };
  std::vector<Part> parts;
  std::vector<std::uint32_t> objects;  ///< indices into Catalog::objects
  std::uint64_t bytes = 0;             ///< of elements and objects
};

/// Pure. Part p of a tensor that is cut goes to writer p mod `writers`, what is whole to the one
/// with the fewest bytes. Parts without elements are left out, unless the tensor has none. USAGE
/// for a cut along a dimension that the tensor lacks, or less than one part or writer.
std::vector<WriterShare> plan_reshard(const Catalog& catalog, const CutRule& rule,
                                      std::int32_t writers);

struct ReshardOptions {
  CutRule rule;
  std::int32_t writers = 1;
  ImageOptions image = {.staging_bytes_max = std::uint64_t{48} << 20U,
                        .batch_bytes = std::uint64_t{8} << 20U};
  bool checksums = true;  ///< hold what is read against its checksums: damage is not written anew
  RankChoice ranks = {};  ///< where each rank has values of its own
  /// Called right before the commit; what it throws ends the work as any failure does.
  std::function<void()> last_look = {};
};

struct ReshardReport {
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t objects = 0;
  std::uint64_t chunks_before = 0;
  std::uint64_t chunks_after = 0;
  std::uint64_t files = 0;                ///< payload files written
  std::uint64_t bytes = 0;                ///< in them
  std::uint64_t ranks = 0;                ///< that have metadata of their own; 0: one for all
  std::vector<std::string> dropped = {};  ///< see SettledRanks
  std::vector<std::string> of_first = {};
  std::vector<std::string> carried = {};   ///< files and directories ("name/") beside the payload
  std::vector<std::string> left_out = {};  ///< what stood there and is not in the new one, and why
  Findings notes = {};                     ///< for example files without checksums
  std::vector<std::string> log = {};       ///< from the commit, for the operator
};

/// What reshard touches besides the checkpoint.
struct ReshardPorts {
  Store& store;  ///< to write to
  Device& device;
  Tasks& tasks;
  Trace& trace;
  Progress& progress;
};

/// Writes beside `target` and swaps in by the commit protocol; until then nothing is visible. What
/// is written is what was read once and held against its checksums, and is read back before it is
/// committed. NO_SPACE, before anything is written, where the store knows that there is too little.
/// Throws what settle_ranks() and reading throw, EXTENT_MISMATCH before that if two items share
/// bytes, NOT_STORED if the common state is gone, and CHECKSUM for content that changed since it
/// was saved. Progress is told of every step before the commit: what it throws ends the work and
/// comes out of here when what was written is removed again.
ReshardReport reshard(Checkpoint& source, const CommitTarget& target, const ReshardOptions& options,
                      const ReshardPorts& ports);

}  // namespace reprise
