#pragma once
// Values together with the content of their bytes that they omit: comparing two files by value
// alone is valid only if nothing else is in them.

#include <string>

#include "core/format/bytes_item.hpp"
#include "core/format/zip/item_source.hpp"

namespace reprise {

struct WholeValue {
  BytesItem item;
  /// Describes for people what the value omits: bytes after a pickle, records of an archive that
  /// nothing refers to. Empty: nothing, except what every torch archive has to say how it was
  /// written. Only meaningful if there is a value.
  std::string left_out;
};

/// Reads an archive like read_bytes_item.
WholeValue read_whole_item(ItemSource& source);
/// Reads a bare pickle; throws like decode_value.
WholeValue read_whole_pickle(ItemSource& source);

}  // namespace reprise
