#pragma once
// Compares two non-tensor items for diff: by value if they can be interpreted, otherwise by
// bytes.

#include <cstdint>
#include <string>

#include "core/diff/diff.hpp"
#include "core/format/whole_value.hpp"
#include "core/format/zip/item_source.hpp"

namespace reprise {

/// Larger items are compared as bytes, so that a single one cannot exhaust memory.
inline constexpr std::uint64_t kDecodedMax = std::uint64_t{16} << 20U;

/// Compares both byte by byte, in bounded steps.
bool same_bytes(ItemSource& left, ItemSource& right);
/// Judges by bytes: equal bytes are equal content, others may be. `why`: why nothing was decoded.
void judge_bytes(bool same, const std::string& why, ObjectDiff& result);
/// An item and its decoded value.
struct ReadItem {
  ItemSource& source;
  const WholeValue& read;
};
/// Compares by value if both have one, otherwise by bytes. Keeps the first few differences.
void judge_items(const ReadItem& left, const ReadItem& right, const DiffOptions& options,
                 ObjectDiff& result);
/// Keeps the verdict "same" only if the items contain nothing besides the compared values, or their
/// bytes are equal; otherwise changes it to not known.
void doubt_left_out(const ReadItem& left, const ReadItem& right, ObjectDiff& result);

}  // namespace reprise
