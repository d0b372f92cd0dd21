#pragma once
// Finds the byte ranges of items in their files, from the metadata. All functions except
// safetensors_in() and require_apart() are pure.

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

/// If torch wrote a file's tensors as safetensors (SerializationFormat.SAFETENSORS), returns an
/// UNSUPPORTED error that says so and how to read them. The tensors of each payload file are then
/// one safetensors file within it, and the ranges in the metadata all begin where that does. Reads
/// a few bytes of each file. Files that can't be read are passed over.
std::optional<Error> safetensors_in(const Checkpoint& checkpoint);

/// Throws EXTENT_MISMATCH for the first file in which two items share bytes; the error has both
/// keys, the file and the offset. Protects code that reads every item of a checkpoint: without this
/// check, a few bytes of metadata could refer to the bytes of a large file again and again. No
/// writer lets two items share bytes, unless it writes safetensors: then throws that error. O(n log
/// n), from the metadata only if all is well.
void require_apart(const Checkpoint& checkpoint);

}  // namespace reprise
