#pragma once
// Checks promises that every reader of items must keep, whatever the bytes are.

#include "core/base/bytes.hpp"
#include "reprise/value.hpp"

namespace reprise::fuzz {

/// Reads the item as an archive, a tensor item, a bytes item and the common state. Throws Broken if
/// one of these readers breaks a promise. True if one of them accepted the item.
bool check_item(ByteSpan item);

/// Checks that the value survives a round trip as a bytes item with right checksums.
void check_written_again(const Value& value);

}  // namespace reprise::fuzz
