#pragma once
// Checks a checkpoint from its metadata and file sizes only. Pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/finding.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// A payload file as found on disk.
struct StoredFile {
  std::string display;
  std::optional<std::uint64_t> size;             ///< nothing if the file does not exist
  std::optional<std::int64_t> modified_ns = {};  ///< as in Entry
};

/// Checks that each tensor's chunks tile it exactly and that every item has storage. `files[i]` is
/// Catalog::files[i], used to name the file of a faulty chunk; may be empty.
Findings check_cover(const Catalog& catalog, std::span<const StoredFile> files = {});

/// Checks that files exist and items lie within them without overlap. `files[i]` is
/// Catalog::files[i]. One finding per file and kind names the first item and counts the others.
Findings check_storage(const Catalog& catalog, std::span<const StoredFile> files);

/// True if the item's range lies within its file, so that reading it makes sense.
bool is_readable(FileIndex file, ByteRange range, std::span<const StoredFile> files);

}  // namespace reprise
