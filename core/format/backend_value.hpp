#pragma once
// Converts metadata.json to a value, so that two such files can be compared.

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Returns a dict from each key to its value as JSON text. Adds keys that some versions of
/// Megatron-Core leave out, with their default values. Throws TORN_FILE if the file is not a JSON
/// object, and LIMIT if it is larger than 1 MiB.
Value read_backend_value(ByteSpan bytes, const ErrorPlace& place = {});

}  // namespace reprise
