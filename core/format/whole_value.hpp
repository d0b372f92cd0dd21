#pragma once
// Reads the value in a file, and reports what the file contains besides the value. Two files may be
// compared by their values alone only if both contain nothing else.

#include <string>

#include "core/format/bytes_item.hpp"
#include "core/format/zip/item_source.hpp"

namespace reprise {

struct WholeValue {
  BytesItem item;
  /// Describes what the value leaves out: bytes after a pickle, or records of an archive to which
  /// nothing refers. Does not count the records in which every torch archive says how it was
  /// written. Empty if nothing is left out. Meaningful only if there is a value.
  std::string left_out;
};

/// Reads an archive or other item like read_bytes_item.
WholeValue read_whole_item(ItemSource& source);
/// Reads a pickle that is not in an archive. Throws like decode_value.
WholeValue read_whole_pickle(ItemSource& source);

}  // namespace reprise
