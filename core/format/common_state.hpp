#pragma once
// Reads and writes the common state, a dict that is the same on all ranks and is stored once. If a
// checkpoint has it in both of these forms, common.pt is read:
//
//   Megatron-Core <= 0.18   file common.pt = torch.save(dict), records under "common/"
//   0.19 and later          object common_state/shard_0_1 = torch.save([dict])

#include <string_view>

#include "core/base/bytes.hpp"
#include "core/format/bytes_item.hpp"
#include "reprise/error.hpp"
#include "reprise/value.hpp"

namespace reprise {

inline constexpr std::string_view kCommonFile = "common.pt";
inline constexpr std::string_view kCommonObjectKey = "common_state/shard_0_1";

/// These functions read the common state from a file or an object. They return an item that is
/// opaque or whose value is the dict itself. They throw the same errors as read_bytes_item, and
/// TORN_FILE if the saved value is neither a dict nor a list of one dict.
BytesItem read_common_file(ByteSpan bytes, const ErrorPlace& place = {});
BytesItem read_common_object(ByteSpan bytes, const ErrorPlace& place = {});

Bytes write_common_file(const Dict& state);
/// Returns the file of a common state that is a dict, or that is the bytes of the file.
Bytes common_file(const Value& state);

}  // namespace reprise
