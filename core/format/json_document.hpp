#pragma once
// Parses the small JSON files of a checkpoint, with bounded size and depth. Only .cpp files may
// include this header: the JSON library is not part of any interface.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// Parses text that must be a single JSON object without duplicate keys at any level. Otherwise
/// throws TORN_FILE with the offset. Throws LIMIT if the text has more than `size_max` bytes or is
/// nested more than 16 levels deep.
nlohmann::json parse_json_object(ByteSpan bytes, const ErrorPlace& place, std::uint64_t size_max);

}  // namespace reprise
