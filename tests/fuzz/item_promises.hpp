#pragma once
// Properties of an item that hold for any bytes.

#include "core/base/bytes.hpp"
#include "reprise/value.hpp"

namespace reprise::fuzz {

/// Reads it as archive, tensor item, bytes item and common state; throws Broken if one of them
/// breaks a promise. True if one of them accepted it.
bool check_item(ByteSpan item);

/// Checks that it survives a round trip as a bytes item with right checksums.
void check_written_again(const Value& value);

}  // namespace reprise::fuzz
