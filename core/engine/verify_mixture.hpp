#pragma once
// Signs that a directory holds files of two saves. Checksums say nothing of that: each file is
// whole by itself, and only a manifest ties it to its metadata.

#include <cstdint>
#include <span>

#include "core/engine/checkpoint.hpp"
#include "core/engine/finding.hpp"
#include "core/engine/verify_catalog.hpp"

namespace reprise {

/// The code of these warnings; `verify --strict` does not take them for errors.
inline constexpr Code kMixtureCode = Code::kStaleMetadata;

/// A warning if some payload files are newer than the metadata and others are not, by more time
/// than a save took or a copy takes. A save writes its metadata last; in a copy files follow each
/// other within the time that each of them takes. Where a store has no times, nothing. Pure.
Findings check_times(std::span<const StoredFile> files, std::int64_t metadata_ns);

/// The same with the metadata's time from the store.
Findings check_times(Checkpoint& checkpoint, std::span<const StoredFile> files);

/// A note if payload files of several items each have the same bytes: one may have been copied over
/// another, or both hold nothing but zeros. Reads the ends of files of equal size, and what is
/// equal there whole.
Findings check_identical_files(Checkpoint& checkpoint, std::span<const StoredFile> files);

}  // namespace reprise
