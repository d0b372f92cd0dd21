#pragma once
// Parses the small JSON files of a checkpoint, with bounded size and depth. For .cpp files only:
// the JSON library is not part of any interface.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// Parses an object at top level with no duplicate keys in any object. Throws TORN_FILE with the
/// offset otherwise; LIMIT above `size_max` bytes or 16 levels.
nlohmann::json parse_json_object(ByteSpan bytes, const ErrorPlace& place, std::uint64_t size_max);

}  // namespace reprise
