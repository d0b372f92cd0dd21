#pragma once
// Makes the output of `--json`: one document with sorted keys and integer counts.

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

/// Returns the output of a verb that fails before it has produced any other output.
std::string error_json(const Error& error);

/// Returns the output of `verify`. `checkpoints` has reports by path as given on the command line.
/// `unread` has the paths that could not be read, with the errors.
std::string verify_json(const std::vector<std::pair<std::string, VerifyReport>>& checkpoints,
                        const std::vector<std::pair<std::string, Error>>& unread);

std::string diff_json(const DiffRequest& request, const DiffReport& report);

std::string reshard_json(const std::string& source, const std::string& target,
                         const ReshardReport& report);

/// Selects what `inspect` reads in addition to the metadata.
struct InspectContent {
  bool digests = false;  ///< SHA-256 of tensors (driver::TensorDigest) and of the items of objects
  bool values = false;   ///< values of objects and of the common state, as value_json writes them
};

/// Lists tensors with their chunks, objects and files, but only keys that the filter wants.
/// `digest` reads and hashes the bytes. If an object or the common state cannot be read, the
/// document has an "error" in place of its content, and the error is added to `unread`.
std::string inspect_json(Checkpoint& checkpoint, const KeyFilter& filter,
                         const InspectContent& content, driver::TensorDigest& digest,
                         Findings& unread);

}  // namespace reprise::cli
