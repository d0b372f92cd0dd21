#pragma once
// Values together with what of their bytes is no part of them: who compares two files by value
// alone must know that nothing else stands in them.

#include <cstddef>
#include <string>

#include "core/format/bytes_item.hpp"
#include "core/format/item_source.hpp"
#include "core/format/pickle_reader.hpp"

namespace reprise {

struct WholeValue {
  BytesItem item;
  /// What the value does not tell of, for people: bytes after a pickle, records of an archive that
  /// nothing refers to. Empty: all is told, but for what every archive of torch has, which says how
  /// it was written. Means nothing without a value.
  std::string left_out;
};

/// An archive, as read_bytes_item.
WholeValue read_whole_item(ItemSource& source);
/// A pickle that stands by itself; throws as decode_value.
WholeValue read_whole_pickle(ItemSource& source);

/// As decode_value; `end` becomes the position after the pickle's STOP.
PickledValue decode_value(ByteSpan pickle, const PickleSource& where, StorageSource* storages,
                          std::size_t& end);

}  // namespace reprise
