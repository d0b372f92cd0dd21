#pragma once
// How diff judges two items that are no tensors: by value where they are interpreted, else by
// bytes.

#include <cstdint>
#include <string>

#include "core/engine/diff.hpp"
#include "core/format/item_source.hpp"
#include "core/format/whole_value.hpp"

namespace reprise {

/// Larger items are compared as bytes, so that one of them cannot take all memory.
inline constexpr std::uint64_t kDecodedMax = std::uint64_t{16} << 20U;

/// Reads both in bounded steps.
bool same_bytes(ItemSource& left, ItemSource& right);
/// Equal bytes are the same content; other bytes may be, too. `why` they were not interpreted.
void judge_bytes(bool same, const std::string& why, ObjectDiff& result);
/// An item with what was read of it.
struct ReadItem {
  ItemSource& source;
  const WholeValue& read;
};
/// By value where both have one, else by bytes. Keeps the first few differences.
void judge_items(const ReadItem& left, const ReadItem& right, const DiffOptions& options,
                 ObjectDiff& result);
/// Equal values are the same only where nothing else stands in the items, or their bytes are equal;
/// else that becomes not known.
void doubt_left_out(const ReadItem& left, const ReadItem& right, ObjectDiff& result);

}  // namespace reprise
