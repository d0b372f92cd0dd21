#pragma once
// Looks for signs that a directory mixes files of two saves. Checksums cannot show this: each file
// is intact on its own, and only a manifest ties it to the metadata.

#include <cstdint>
#include <span>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/verify/verify_catalog.hpp"

namespace reprise {

/// Code of the warnings about mixed saves; `verify --strict` does not turn them into errors.
inline constexpr Code kMixtureCode = Code::kStaleMetadata;

/// Warns if some payload files, but not all, are newer than the metadata by more time than a save
/// or a copy takes. A save writes its metadata last; in a copy, each file follows the one before it
/// within the time it takes to copy a file. Returns nothing if the store has no times. Pure.
Findings check_times(std::span<const StoredFile> files, std::int64_t metadata_ns);

/// Checks times as above; takes the metadata's time from the store.
Findings check_times(Checkpoint& checkpoint, std::span<const StoredFile> files);

/// Notes payload files that have several items and identical bytes: one may have been copied over
/// another, or both hold only zeros. Reads the ends of files of equal size, and the whole files if
/// the ends match.
Findings check_identical_files(Checkpoint& checkpoint, std::span<const StoredFile> files);

}  // namespace reprise
