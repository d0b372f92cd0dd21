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

/// Warns if some payload files, but not all, are much newer than the metadata. A save writes the
/// metadata last. In a copy, the times of two files differ by at most the time that copying takes.
/// So a file that is newer than this allows comes from another save. Returns nothing if the store
/// has no times. Pure.
Findings check_times(std::span<const StoredFile> files, std::int64_t metadata_ns);

/// Checks times as above; takes the metadata's time from the store.
Findings check_times(Checkpoint& checkpoint, std::span<const StoredFile> files);

/// Notes payload files that have several items and identical bytes: one may have been copied over
/// another, or both hold only zeros. Reads the ends of files of equal size, and the whole files if
/// the ends match.
Findings check_identical_files(Checkpoint& checkpoint, std::span<const StoredFile> files);

}  // namespace reprise
