#pragma once
// Compares two items that are not tensors: by value if both can be interpreted, otherwise by bytes.

#include <cstdint>
#include <string>

#include "core/diff/diff.hpp"
#include "core/format/whole_value.hpp"
#include "core/format/zip/item_source.hpp"
#include "core/seams/diff_seams.hpp"

namespace reprise {

/// Items larger than this are compared as bytes, so that a single item cannot exhaust memory.
inline constexpr std::uint64_t kDecodedMax = std::uint64_t{16} << 20U;

/// True if both items have the same bytes. Reads them in bounded steps.
bool same_bytes(ItemSource& left, ItemSource& right);
/// Sets the verdict of items that were compared as bytes instead of values. Equal bytes are "same".
/// Unequal bytes are "not known", because the values may still be equal. `why` says why no value
/// was decoded.
void judge_bytes(bool same, const std::string& why, ObjectDiff& result);
/// An item and its decoded value.
struct ReadItem {
  ItemSource& source;
  const WholeValue& read;
};
/// Compares two items by value if both have a value, otherwise by bytes. Keeps the first few
/// differences.
void judge_items(const ReadItem& left, const ReadItem& right, const DiffOptions& options,
                 const DiffSeams& seams, ObjectDiff& result);
/// Changes the verdict "same" to "not known" if the bytes of the items differ and at least one item
/// contains more than the compared value.
void doubt_left_out(const ReadItem& left, const ReadItem& right, ObjectDiff& result);

}  // namespace reprise
