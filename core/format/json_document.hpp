#pragma once
// JSON of the small files beside a checkpoint, bounded in size and depth. For .cpp files alone:
// the JSON library is no part of any contract.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// An object at the top, no key twice in one object. TORN_FILE with the offset if it is not that;
/// LIMIT above `size_max` bytes or 16 levels.
nlohmann::json parse_json_object(ByteSpan bytes, const ErrorPlace& place, std::uint64_t size_max);

}  // namespace reprise
