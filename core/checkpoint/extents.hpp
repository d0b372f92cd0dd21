#pragma once
// Finds the byte ranges of items in their files, from the metadata. Opens no file.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/state/catalog.hpp"
#include "reprise/error.hpp"

namespace reprise {

class Checkpoint;

/// One item of a file: a tensor chunk or an object. Borrows its key from the catalog.
struct StoredItem {
  FileIndex file = kNoFile;
  ByteRange range;
  const std::string* key = nullptr;
};

/// Returns all items sorted by file and offset; items without storage come last.
std::vector<StoredItem> items_by_place(const Catalog& catalog);

struct Overlap {
  StoredItem item;        ///< first item that begins within another item
  StoredItem met;         ///< the item in which `item` begins
  std::size_t count = 0;  ///< number of items that begin within another item
};

/// Finds overlapping items in one file; returns nothing if there are none. The items must be sorted
/// by offset. Skips empty items and items that do not fit within `file_size`. O(n).
std::optional<Overlap> find_overlap(
    std::span<const StoredItem> items,
    std::uint64_t file_size = std::numeric_limits<std::uint64_t>::max());
/// Describes the overlap for an error message about overlap.item.
std::string words_of(const Overlap& overlap);

/// Throws what Checkpoint::require_sound() throws, and EXTENT_MISMATCH for the first file in which
/// two items share bytes; the error has both keys, the file and the offset. Protects code that
/// reads every item of a checkpoint: without this check, a few bytes of metadata could refer to the
/// bytes of a large file again and again. No writer lets two items share bytes. O(n log n).
void require_apart(const Checkpoint& checkpoint);

}  // namespace reprise
