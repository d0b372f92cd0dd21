#pragma once
// What `--json` prints: one document with sorted keys, counts as integers.

#include <string>
#include <utility>
#include <vector>

#include "core/engine/diff.hpp"
#include "core/engine/reshard.hpp"
#include "core/engine/verify.hpp"
#include "scenarios/cli/key_filter.hpp"
#include "scenarios/driver/tensor_digest.hpp"

namespace reprise::cli {

/// `checkpoints`: as named on the command line, with what was found.
std::string verify_json(const std::vector<std::pair<std::string, VerifyReport>>& checkpoints);

std::string diff_json(const std::string& left, const std::string& right, const DiffReport& report);

std::string reshard_json(const std::string& source, const std::string& target,
                         const ReshardReport& report);

/// What `inspect` reads beyond the metadata.
struct InspectContent {
  bool digests = false;  ///< SHA-256 of tensors (driver::TensorDigest) and of objects' items
  bool values = false;   ///< objects and the common state, as value_json writes them
};

/// Tensors with their chunks, objects, files; keys that the filter wants. `digest` reads what is
/// to be hashed.
std::string inspect_json(Checkpoint& checkpoint, const KeyFilter& filter,
                         const InspectContent& content, driver::TensorDigest& digest);

}  // namespace reprise::cli
