#pragma once
// Reads the value in a file, and reports what the file contains besides the value. Two files may be
// compared by their values alone only if both contain nothing else.

#include <string>

#include "core/format/bytes_item.hpp"
#include "core/format/zip/item_source.hpp"

namespace reprise {

struct WholeValue {
  BytesItem item;
  /// Describes the content of the file that is not part of the value: bytes after a pickle, or
  /// archive records to which nothing refers. Records that only describe the archive's format
  /// (version, byte order and so on) are ignored. Empty if there is no such content. Meaningful
  /// only if there is a value.
  std::string left_out;
};

/// Reads an item of any kind, as read_bytes_item does.
WholeValue read_whole_item(ItemSource& source);
/// Reads a pickle that is not in an archive. Throws the same errors as decode_value.
WholeValue read_whole_pickle(ItemSource& source);

}  // namespace reprise
