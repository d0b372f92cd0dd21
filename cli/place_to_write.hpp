#pragma once
// Checks the place where a verb writes a checkpoint, so that nothing is lost.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/checkpoint_argument.hpp"

namespace reprise::cli {

/// Throws USAGE if IN, a path for people, and OUT are the same directory or one contains the other,
/// or if IN is in a directory that writing OUT would move or remove. Follows links.
void require_apart(const std::string& in, const StoredPath& out);

/// Treatment of an existing checkpoint at OUT.
enum class Standing : std::uint8_t { kKept, kReplaced };

/// Throws USAGE if OUT exists and must be kept, or contains anything other than a checkpoint. A
/// checkpoint that a crash left next to its place counts as existing there.
void require_free(const StoredPath& out, Standing standing);

/// Lists, as paths for people, the unfinished files of earlier writers of OUT.
std::vector<std::string> unfinished_of(const StoredPath& out);

}  // namespace reprise::cli
