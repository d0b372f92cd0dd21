#pragma once
// What `--json` prints: one document with sorted keys, counts as integers.

#include <string>
#include <utility>
#include <vector>

#include "core/engine/diff.hpp"
#include "core/engine/reshard.hpp"
#include "core/engine/verify.hpp"
#include "scenarios/cli/key_filter.hpp"

namespace reprise::cli {

/// `checkpoints`: as named on the command line, with what was found.
std::string verify_json(const std::vector<std::pair<std::string, VerifyReport>>& checkpoints);

std::string diff_json(const std::string& left, const std::string& right, const DiffReport& report);

std::string reshard_json(const std::string& source, const std::string& target,
                         const ReshardReport& report);

/// Tensors with their chunks, objects, files; keys that the filter wants.
std::string inspect_json(Checkpoint& checkpoint, const KeyFilter& filter);

}  // namespace reprise::cli
