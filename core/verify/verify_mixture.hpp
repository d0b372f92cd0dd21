#pragma once
// Detects signs that a directory mixes files of two saves. Checksums cannot: each file is intact by
// itself, and only a manifest ties it to its metadata.

#include <cstdint>
#include <span>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/verify/verify_catalog.hpp"

namespace reprise {

/// Code of these warnings; `verify --strict` does not turn them into errors.
inline constexpr Code kMixtureCode = Code::kStaleMetadata;

/// Warns if some payload files, but not all, are newer than the metadata by more time than a save
/// or a copy takes. A save writes its metadata last; in a copy, files follow each other within the
/// time to copy each. Returns nothing if the store has no times. Pure.
Findings check_times(std::span<const StoredFile> files, std::int64_t metadata_ns);

/// Same, but takes the metadata's time from the store.
Findings check_times(Checkpoint& checkpoint, std::span<const StoredFile> files);

/// Notes payload files of several items with identical bytes: one may have been copied over
/// another, or both hold only zeros. Reads the ends of files of equal size, and the whole files if
/// the ends match.
Findings check_identical_files(Checkpoint& checkpoint, std::span<const StoredFile> files);

}  // namespace reprise
