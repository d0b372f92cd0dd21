#pragma once
// What `--json` prints: one document with sorted keys, counts as integers.

#include <string>
#include <utility>
#include <vector>

#include "core/engine/diff.hpp"
#include "core/engine/reshard.hpp"
#include "core/engine/verify.hpp"
#include "scenarios/cli/files_report.hpp"
#include "scenarios/cli/key_filter.hpp"
#include "scenarios/driver/tensor_digest.hpp"

namespace reprise::cli {

/// What is printed where a verb comes to an error before it has anything to print.
std::string error_json(const Error& error);

/// `checkpoints`: as named on the command line, with what was found; `unread`: those of which
/// nothing can be said, and why.
std::string verify_json(const std::vector<std::pair<std::string, VerifyReport>>& checkpoints,
                        const std::vector<std::pair<std::string, Error>>& unread);

std::string diff_json(const AskedDiff& asked, const DiffReport& report);

std::string reshard_json(const std::string& source, const std::string& target,
                         const ReshardReport& report);

/// What `inspect` reads beyond the metadata.
struct InspectContent {
  bool digests = false;  ///< SHA-256 of tensors (driver::TensorDigest) and of objects' items
  bool values = false;   ///< objects and the common state, as value_json writes them
};

/// Tensors with their chunks, objects, files; keys that the filter wants. `digest` reads what is
/// to be hashed. Where an object or the common state can't be read, its "error" stands in its place
/// and in `unread`, and the rest follows.
std::string inspect_json(Checkpoint& checkpoint, const KeyFilter& filter,
                         const InspectContent& content, driver::TensorDigest& digest,
                         Findings& unread);

}  // namespace reprise::cli
