#pragma once
// Reads a checkpoint root with the engine's own reader: for each checkpoint below it, the digests
// of its tensors and the names of its objects.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/geometry/box.hpp"
#include "properties/ruling_code.hpp"

namespace reprise::driver {

struct StoredDigest {
  DType dtype = DType::kFloat32;
  Dims shape;
  std::uint64_t digest = 0;
};

struct StoredFlaw {
  RulingCode code = Code::kInternal;
  std::string text;
};

struct StoredCheckpoint {
  std::string directory;             ///< relative to the root; empty for the root itself
  std::optional<std::int64_t> step;  ///< number at the end of the directory's name
  std::map<std::string, StoredDigest> tensors;
  std::map<std::string, StoredFlaw> unread;  ///< flaws of the tensors that can't be read, by key
  std::set<std::string> objects;
  std::optional<StoredFlaw> flaw;  ///< set if no part of the checkpoint can be read
};

/// For each key, the boxes of the tensor that belong to no rank.
using Blanks = std::map<std::string, std::vector<Box>>;

/// Reads all checkpoints at most two folders below `root`, sorted by directory. Never throws
/// because of what it finds there. Digests leave out the elements of blank boxes.
std::vector<StoredCheckpoint> read_root(const std::string& root, const Blanks& blanks = {});

/// Returns a tensor's elements, row-major; nothing if it can't be read.
std::optional<Bytes> stored_elements(const std::string& root, const std::string& directory,
                                     const std::string& key);

/// True if all saves go to one folder, whose name contains no step.
bool shares_folder(const std::vector<StoredCheckpoint>& stored);
/// Returns the checkpoint of the step, or the only one if all saves go to one folder. Null if there
/// is none.
const StoredCheckpoint* checkpoint_of(const std::vector<StoredCheckpoint>& stored,
                                      std::int64_t step);

}  // namespace reprise::driver
