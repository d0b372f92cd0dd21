#pragma once
// metadata.json as a value, so that two of them can be compared.

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// A dict from each key to its value as JSON text. Keys that some versions of Megatron-Core leave
/// out stand there with what they then mean. TORN_FILE for what is no JSON object, LIMIT above
/// 1 MiB.
Value read_backend_value(ByteSpan bytes, const ErrorPlace& place = {});

}  // namespace reprise
