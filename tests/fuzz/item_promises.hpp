#pragma once
// What has to hold of an item, whatever its bytes.

#include "core/base/bytes.hpp"
#include "reprise/value.hpp"

namespace reprise::fuzz {

/// Reads it as archive, tensor item, bytes item and common state; Broken if one of these lies.
/// True if one of them took it.
bool check_item(ByteSpan item);

/// Written as a bytes item it is read as the same value, with right checksums.
void check_written_again(const Value& value);

}  // namespace reprise::fuzz
