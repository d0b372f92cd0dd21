#pragma once
// Where items lie in their files, by the metadata. Pure, but for require_apart()'s words.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/state/catalog.hpp"

namespace reprise {

class Checkpoint;

/// One item of a file, tensor chunk or object. Borrows its key from the catalog.
struct StoredItem {
  FileIndex file = kNoFile;
  ByteRange range;
  const std::string* key = nullptr;
};

/// All items by file and offset; those without storage last.
std::vector<StoredItem> items_by_place(const Catalog& catalog);

struct Overlap {
  StoredItem item;        ///< the first that begins in bytes of another
  StoredItem met;         ///< that other one
  std::size_t count = 0;  ///< of items that begin in bytes of others
};

/// Of one file's items by offset; items without bytes or beyond `file_size` are passed over. O(n).
std::optional<Overlap> find_overlap(
    std::span<const StoredItem> items,
    std::uint64_t file_size = std::numeric_limits<std::uint64_t>::max());
/// Says it of overlap.item.
std::string words_of(const Overlap& overlap);

/// What reads all of a checkpoint's items asks this first: a few bytes of metadata could otherwise
/// name a large file's bytes again and again. No writer lets two items share bytes. Throws
/// EXTENT_MISMATCH for the first file of which two items do: key of one and of the other, file,
/// offset. O(n log n), from the metadata alone.
void require_apart(const Checkpoint& checkpoint);

}  // namespace reprise
