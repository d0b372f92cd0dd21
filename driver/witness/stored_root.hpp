#pragma once
// Reads all checkpoints below a root with the engine's own reader. For each checkpoint, computes
// the digests of its tensors and lists the names of its objects.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/geometry/box.hpp"
#include "properties/finding.hpp"

namespace reprise::driver {

using judged::Finding;
using judged::Findings;
using judged::Severity;

struct StoredDigest {
  DType dtype = DType::kFloat32;
  Dims shape;
  std::uint64_t digest = 0;
};

struct StoredCheckpoint {
  std::string directory;             ///< relative to the root; empty for the root itself
  std::optional<std::int64_t> step;  ///< number at the end of the directory's name
  std::map<std::string, StoredDigest> tensors;
  std::map<std::string, Finding> unread;  ///< by key: why the tensor can't be read
  std::set<std::string> objects;
  std::optional<Finding> flaw = {};  ///< set if no part of the checkpoint can be read
  /// Directories of which one save consists, if there are several; their keys do not overlap.
  std::vector<std::string> parts = {};
};

/// Maps the key of a tensor to its blank boxes. Blank boxes belong to no rank.
using Blanks = std::map<std::string, std::vector<Box>>;

/// Reads every checkpoint that is `root` itself or is one or two folders below it. Sorts them by
/// directory. Some programs save the model and the optimizer to two folders of one parent, such as
/// "model_0" and "optim_0": these are parts of one checkpoint, which is the parent. Flaws of the
/// stored files are returned, not thrown. Digests leave out the elements of blank boxes.
std::vector<StoredCheckpoint> read_root(const std::string& root, const Blanks& blanks = {});

/// Returns a tensor's elements in row-major order, or nothing if the tensor can't be read.
std::optional<Bytes> stored_elements(const std::string& root, const StoredCheckpoint& stored,
                                     const std::string& key);

/// True if all saves go to one folder, whose name contains no step.
bool shares_folder(const std::vector<StoredCheckpoint>& stored);
/// Returns the checkpoint of step `step`. If all saves go to one folder, returns the checkpoint in
/// that folder, whatever its step. Returns null if there is none.
const StoredCheckpoint* checkpoint_of(const std::vector<StoredCheckpoint>& stored,
                                      std::int64_t step);

}  // namespace reprise::driver
