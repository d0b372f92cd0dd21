#pragma once
// What can be said of a checkpoint from its metadata and its files' sizes alone. Pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/engine/finding.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// A payload file as it is on disk.
struct StoredFile {
  std::string display;
  std::optional<std::uint64_t> size;             ///< nothing: there is no such file
  std::optional<std::int64_t> modified_ns = {};  ///< as in Entry
};

/// Each tensor's chunks tile it exactly, and every item has storage. `files[i]` is
/// Catalog::files[i], for saying where a chunk at fault is; may be empty.
Findings check_cover(const Catalog& catalog, std::span<const StoredFile> files = {});

/// Files are there, items lie within them and do not overlap. `files[i]` is Catalog::files[i]. One
/// finding per file and kind; it names the first item and counts the others.
Findings check_storage(const Catalog& catalog, std::span<const StoredFile> files);

/// True if the item's range lies within its file: reading it is worth trying.
bool is_readable(FileIndex file, ByteRange range, std::span<const StoredFile> files);

}  // namespace reprise
