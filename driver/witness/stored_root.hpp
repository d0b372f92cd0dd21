#pragma once
// What a checkpoint root holds, read by the engine's own reader: for each checkpoint below it the
// digests of its tensors and the names of its objects.

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
  std::string directory;             ///< below the root; empty: the root itself
  std::optional<std::int64_t> step;  ///< the number at the end of its name
  std::map<std::string, StoredDigest> tensors;
  std::map<std::string, StoredFlaw> unread;  ///< tensors that can't be read
  std::set<std::string> objects;
  std::optional<StoredFlaw> flaw;  ///< why nothing of it can be read
};

/// Reads all checkpoints at most two folders below `root`, sorted by directory. Never throws for
/// what it finds there.
std::vector<StoredCheckpoint> read_root(const std::string& root);

/// Returns a tensor's elements, row-major; nothing if it can't be read.
std::optional<Bytes> stored_elements(const std::string& root, const std::string& directory,
                                     const std::string& key);

}  // namespace reprise::driver
