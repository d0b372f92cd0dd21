#pragma once
// Rewrites a checkpoint with another sharding. Tensors are read and written in bounded steps.
// Objects, common state and the files next to the payload are copied byte for byte, except that
// missing checksums of records are added.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/reshard/rank_values.hpp"
#include "core/save/commit_protocol.hpp"
#include "core/save/image_writer.hpp"
#include "reprise/device.hpp"
#include "reprise/inspect.hpp"
#include "reprise/ports.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Describes how to divide a tensor: dimension `dim` is divided into `parts` by the ceil-chunk
/// rule.
struct Cut {
  std::size_t dim = 0;
  std::int64_t parts = 1;
};

/// Returns how to divide a tensor, given its key and logical shape; nothing if the tensor keeps its
/// boxes.
using CutRule = std::function<std::optional<Cut>(const std::string& key, const Dims& shape)>;

/// A box of a tensor, and the writer that writes it.
struct OwnedBox {
  Box box;
  std::int32_t writer = 0;
};

/// Returns the boxes of a tensor, given its index in the catalog, and their writers, in the order
/// in which they are written; nothing if the tensor keeps its boxes.
using BoxRule = std::function<std::vector<OwnedBox>(std::uint32_t tensor)>;
/// Makes such a rule for a catalog, which outlives the rule.
using BoxRuleFor = std::function<BoxRule(const Catalog& catalog)>;

/// The parts and objects that one writer writes. Each list is in catalog order.
struct WriterShare {
  struct Part {
    std::uint32_t tensor = 0;  ///< index into Catalog::tensors
    Box box;                   ///< box within the logical tensor
  };
  std::vector<Part> parts;
  std::vector<std::uint32_t> objects;  ///< indices into Catalog::objects
  std::uint64_t bytes = 0;             ///< total size of the elements and objects
};

/// Returns the shares of all writers. Part p of a divided tensor goes to writer p mod `writers`; an
/// undivided item goes to the writer with the fewest bytes. Parts without elements are left out,
/// unless the whole tensor is empty. Throws USAGE if a cut names a dimension that the tensor does
/// not have, or if the number of parts or writers is less than one. Pure.
std::vector<WriterShare> plan_reshard(const Catalog& catalog, const CutRule& rule,
                                      std::int32_t writers);

/// The same if `rule` says the boxes and the writers of parts.
std::vector<WriterShare> plan_boxes(const Catalog& catalog, const BoxRule& rule,
                                    std::int32_t writers);

/// A small file of the new checkpoint that is not copied from the source.
struct WrittenInstead {
  std::string name;
  Bytes bytes;
};

struct ReshardOptions {
  CutRule rule;
  std::int32_t writers = 1;
  ImageOptions image = {.staging_bytes_max = std::uint64_t{48} << 20U,
                        .batch_bytes = std::uint64_t{8} << 20U};
  /// If true, the data read is compared with its checksums, so that damage is not copied.
  bool checksums = true;
  RankChoice ranks = {};  ///< what happens to values that each rank saved for itself
  /// If true, the strides that torch 2.15 records are kept, and earlier torch can't read the
  /// result.
  bool strides = false;
  /// If this is set, it decides instead of `rule`.
  BoxRuleFor boxes_for = {};
  /// If this is set, it is written as the common state, in the place of the stored one.
  std::optional<Value> common = {};
  /// Files that are written in place of those that the source has or lacks: common.pt and
  /// metadata.json.
  std::vector<WrittenInstead> files = {};
  std::vector<std::string> left_objects = {};  ///< keys of objects that are not written
  /// Called right before the commit. An exception from it aborts the rewrite, as any failure does.
  std::function<void()> last_look = {};
  /// Called with the directory of the new checkpoint when all its files are written, before it
  /// gets its name. An exception from it aborts the rewrite.
  std::function<void(const std::string&)> judge = {};
};

struct ReshardReport {
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t objects = 0;
  std::uint64_t chunks_before = 0;
  std::uint64_t chunks_after = 0;
  std::uint64_t files = 0;  ///< number of payload files written
  std::uint64_t bytes = 0;  ///< total size of the payload files
  /// Number of ranks with separate metadata files in the new checkpoint; 0 if all ranks share one
  /// `.metadata`.
  std::uint64_t ranks = 0;
  std::vector<std::string> dropped = {};  ///< see ChosenValues
  std::vector<std::string> of_first = {};
  std::vector<std::string> carried = {};   ///< files and directories ("name/") that were copied
  std::vector<std::string> left_out = {};  ///< names that were not copied, with the reason
  Findings notes = {};                     ///< facts worth knowing, such as files without checksums
  std::vector<std::string> log = {};       ///< messages of the commit for the operator
};

/// Interfaces that reshard uses in addition to the source checkpoint.
struct ReshardPorts {
  Store& store;  ///< store to write to
  Device& device;
  Tasks& tasks;  ///< with several threads, each of them writes a file, in about 6 MiB of memory
  Trace& trace;
  Progress& progress;
};

/// Rewrites the checkpoint `source` to `target`. The new checkpoint is written to a directory next
/// to `target` and becomes visible only when the commit protocol moves that directory to `target`.
/// Data is read once and compared with its checksums on the way; what is wrong is dropped with all
/// that was written. The written files are read back before the commit. The same bytes are written
/// whatever the number of threads. If a file can't be written, those after it stop soon and those
/// before it are still tried, so the first error in order is thrown whatever the number of threads.
/// Throws EXTENT_MISMATCH before reading any data if two items overlap in a file. Throws NO_SPACE
/// before writing anything if the store knows that it has too little space. Throws NOT_STORED if
/// the common state is missing, and CHECKSUM for content that changed since it was saved. Also
/// throws the errors of choose_values() and of reading. Every step before the commit is reported to
/// `progress`. If `progress` throws, the rewrite is aborted, its files are removed, and the
/// exception is rethrown.
ReshardReport reshard(Checkpoint& source, const CommitTarget& target, const ReshardOptions& options,
                      const ReshardPorts& ports);

}  // namespace reprise
