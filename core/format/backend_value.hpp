#pragma once
// Converts metadata.json to a value, so that two such files can be compared.

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Returns a dict that maps each key to its value as JSON text. If the file lacks a key that some
/// versions of Megatron-Core leave out, the key is added with its default value. Throws TORN_FILE
/// if the file is not a JSON object, and LIMIT if it is larger than 1 MiB.
Value read_backend_value(ByteSpan bytes, const ErrorPlace& place = {});

}  // namespace reprise
