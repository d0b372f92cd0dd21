#pragma once
// The output of `--json`: one document with sorted keys and integer counts.

#include <string>
#include <utility>
#include <vector>

#include "cli/output/files_report.hpp"
#include "cli/output/key_filter.hpp"
#include "core/diff/diff.hpp"
#include "core/reshard/reshard.hpp"
#include "core/verify/verify.hpp"
#include "driver/record/tensor_digest.hpp"

namespace reprise::cli {

/// Returns the output of a verb that fails before it has any other output.
std::string error_json(const Error& error);

/// `checkpoints`: reports by path as named on the command line; `unread`: paths that could not be
/// read, with the error.
std::string verify_json(const std::vector<std::pair<std::string, VerifyReport>>& checkpoints,
                        const std::vector<std::pair<std::string, Error>>& unread);

std::string diff_json(const DiffRequest& request, const DiffReport& report);

std::string reshard_json(const std::string& source, const std::string& target,
                         const ReshardReport& report);

/// Content that `inspect` reads beyond the metadata.
struct InspectContent {
  bool digests = false;  ///< SHA-256 of tensors (driver::TensorDigest) and of objects' items
  bool values = false;   ///< objects and the common state, as value_json writes them
};

/// Lists tensors with their chunks, objects, files; only keys that the filter wants. `digest` reads
/// the bytes to hash. If an object or the common state can't be read, its "error" replaces it and
/// is also added to `unread`, and the output continues.
std::string inspect_json(Checkpoint& checkpoint, const KeyFilter& filter,
                         const InspectContent& content, driver::TensorDigest& digest,
                         Findings& unread);

}  // namespace reprise::cli
