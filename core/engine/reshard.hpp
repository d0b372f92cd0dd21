#pragma once
// The same content under another sharding. Tensors are read and written in bounded steps; objects
// and the common state are copied byte for byte.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/engine/checkpoint.hpp"
#include "core/engine/commit.hpp"
#include "core/engine/image_writer.hpp"
#include "core/ports/device.hpp"
#include "core/ports/tasks.hpp"
#include "core/ports/trace.hpp"

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
  bool checksums = true;  ///< read everything once before, so that damage is not written anew
};

struct ReshardReport {
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t objects = 0;
  std::uint64_t chunks_before = 0;
  std::uint64_t chunks_after = 0;
  std::uint64_t files = 0;  ///< payload files written
  std::uint64_t bytes = 0;  ///< in them
};

/// What reshard touches besides the checkpoint.
struct ReshardPorts {
  Store& store;  ///< to write to
  Device& device;
  Tasks& tasks;
  Trace& trace;
  Progress& progress;
};

/// Writes beside `target` and swaps in by the commit protocol; until then nothing is visible.
/// Throws what reading throws, EXTENT_MISMATCH before that if two items share bytes, MISSING_KEY
/// if the common state is gone, and CHECKSUM for content that changed since it was saved.
ReshardReport reshard(Checkpoint& source, const CommitTarget& target, const ReshardOptions& options,
                      const ReshardPorts& ports);

}  // namespace reprise
