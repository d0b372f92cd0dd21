#pragma once
// Looks for signs that a directory mixes files of two saves. Checksums cannot show this, because
// each file is intact on its own. Only a manifest would show which files belong to the metadata.

#include <cstdint>
#include <span>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/verify/verify_catalog.hpp"

namespace reprise {

/// Code of the warnings and notes about mixed saves.
inline constexpr Code kMixtureCode = Code::kStaleMetadata;

/// Warns if some payload files, but not all, are much newer than the metadata. A save writes the
/// metadata last. Copying can make a payload file newer than the metadata, but at most by the time
/// that copying takes. A larger difference means that the file comes from another save. If it is
/// no larger than clocks of two machines may differ, this is a note. Returns nothing if the store
/// has no times. Pure.
Findings check_times(std::span<const StoredFile> files, std::int64_t metadata_ns);

/// Calls check_times() with the times that the store gives for the metadata and the payload files.
Findings check_times(Checkpoint& checkpoint, std::span<const StoredFile> files);

/// Reports, as notes, payload files that have several items and identical bytes. Perhaps one file
/// was copied over another, or both hold only zeros. Reads the ends of files of equal size, and the
/// whole files if the ends match.
Findings check_identical_files(Checkpoint& checkpoint, std::span<const StoredFile> files);

}  // namespace reprise
