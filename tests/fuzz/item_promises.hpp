#pragma once
// Checks promises that every reader of items must keep, whatever the bytes are.

#include "core/base/bytes.hpp"
#include "reprise/value.hpp"

namespace reprise::fuzz {

/// Reads the item as an archive, as a tensor item, as a bytes item and as the common state. Throws
/// Broken if one of these readers breaks a promise. Returns true if at least one reader accepted
/// the item.
bool check_item(ByteSpan item);

/// Writes the value as a bytes item and checks that reading it gives the same value, with correct
/// checksums.
void check_written_again(const Value& value);

}  // namespace reprise::fuzz
