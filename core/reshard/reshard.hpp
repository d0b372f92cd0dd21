#pragma once
// Rewrites a checkpoint under another sharding. Tensors are read and written in bounded steps;
// objects, common state and the files next to the payload are copied byte for byte, except for
// checksums that their writer left out.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/reshard/rank_values.hpp"
#include "core/save/commit.hpp"
#include "core/save/image_writer.hpp"
#include "reprise/device.hpp"
#include "reprise/inspect.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// A new cut of a tensor: dimension `dim` into `parts` by the ceil-chunk rule.
struct Cut {
  std::size_t dim = 0;
  std::int64_t parts = 1;
};

/// Returns the cut for a tensor (key, logical shape), or nothing if the tensor keeps its boxes.
using CutRule = std::function<std::optional<Cut>(const std::string& key, const Dims& shape)>;

/// The share of one writer; each list is in catalog order.
struct WriterShare {
  struct Part {
    std::uint32_t tensor = 0;  ///< index into Catalog::tensors
    Box box;                   ///< box of the logical tensor
  };
  std::vector<Part> parts;
  std::vector<std::uint32_t> objects;  ///< indices into Catalog::objects
  std::uint64_t bytes = 0;             ///< bytes of elements and objects
};

/// Pure. Part p of a cut tensor goes to writer p mod `writers`, an uncut item to the writer with
/// the fewest bytes. Parts without elements are omitted, unless the whole tensor is empty. Throws
/// USAGE for a cut along a missing dimension, or fewer than one part or writer.
std::vector<WriterShare> plan_reshard(const Catalog& catalog, const CutRule& rule,
                                      std::int32_t writers);

struct ReshardOptions {
  CutRule rule;
  std::int32_t writers = 1;
  ImageOptions image = {.staging_bytes_max = std::uint64_t{48} << 20U,
                        .batch_bytes = std::uint64_t{8} << 20U};
  bool checksums = true;  ///< verify checksums of data read, so that damage is not copied
  RankChoice ranks = {};  ///< resolves values that each rank has for itself
  /// Called right before the commit; an exception from it aborts like any failure.
  std::function<void()> last_look = {};
};

struct ReshardReport {
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t objects = 0;
  std::uint64_t chunks_before = 0;
  std::uint64_t chunks_after = 0;
  std::uint64_t files = 0;                ///< payload files written
  std::uint64_t bytes = 0;                ///< total size of those files
  std::uint64_t ranks = 0;                ///< ranks with metadata of their own; 0: one for all
  std::vector<std::string> dropped = {};  ///< see SettledRanks
  std::vector<std::string> of_first = {};
  std::vector<std::string> carried = {};   ///< files and directories ("name/") next to the payload
  std::vector<std::string> left_out = {};  ///< names that were not copied, and why
  Findings notes = {};                     ///< for example files without checksums
  std::vector<std::string> log = {};       ///< messages from the commit, for the operator
};

/// Interfaces that reshard uses besides the checkpoint.
struct ReshardPorts {
  Store& store;  ///< store to write to
  Device& device;
  Tasks& tasks;
  Trace& trace;
  Progress& progress;
};

/// Writes to a directory next to `target` and swaps it in by the commit protocol; nothing is
/// visible before. The data written is the data verified: it is read once, checked against its
/// checksums, and read back before the commit. Throws NO_SPACE before writing if the store knows it
/// lacks space, all errors of settle_ranks() and reading, EXTENT_MISMATCH before that if two items
/// share bytes, NOT_STORED if the common state is missing, and CHECKSUM for content changed since
/// it was saved. Progress gets every step before the commit; an exception from it aborts, and is
/// rethrown once the files are removed.
ReshardReport reshard(Checkpoint& source, const CommitTarget& target, const ReshardOptions& options,
                      const ReshardPorts& ports);

}  // namespace reprise
