#pragma once
// Reads `--rename 's/REGEX/TEXT/'`, which gives other keys to the items of one checkpoint.

#include <string>
#include <vector>

#include "cli/arguments/checkpoint_argument.hpp"
#include "core/checkpoint/checkpoint.hpp"

namespace reprise::cli {

/// Opens the checkpoint and gives other keys to its items by applying the substitutions one after
/// the other. The common state keeps its key. A substitution is written as for sed: any character
/// may stand for '/', "\/" is a '/' within the parts, and a 'g' at the end replaces every match
/// instead of the first. KeySubstitution says what expression and TEXT may be. Throws USAGE for
/// other words, if two keys become the same, if a key would become empty or longer than keys may
/// be, and if a substitution changes no key at all.
Checkpoint opened(const StoredPath& stored, const std::vector<std::string>& substitutions);

}  // namespace reprise::cli
