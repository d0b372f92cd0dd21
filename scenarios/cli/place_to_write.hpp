#pragma once
// Where a verb writes a checkpoint: what may stand there, and what must not be lost by it.

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/cli/checkpoint_argument.hpp"

namespace reprise::cli {

/// Throws USAGE if IN, a path for people, and OUT are one directory or lie within each other, or if
/// IN lies in what writing OUT would move or remove. Links are followed.
void require_apart(const std::string& in, const StoredPath& out);

/// What becomes of a checkpoint that stands at OUT.
enum class Standing : std::uint8_t { kKept, kReplaced };

/// Throws USAGE if something stands at OUT that is to be kept, or that is not a checkpoint and
/// nothing else. A checkpoint that a crash left beside its place counts as standing there.
void require_free(const StoredPath& out, Standing standing);

/// Lists, as paths for people, what a writer of OUT left unfinished.
std::vector<std::string> unfinished_of(const StoredPath& out);

}  // namespace reprise::cli
