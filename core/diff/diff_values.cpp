#include "core/diff/diff_values.hpp"

#include <algorithm>

namespace reprise {

bool same_bytes(ItemSource& left, ItemSource& right) {
  if (left.size() != right.size()) return false;
  constexpr std::uint64_t kBlock = std::uint64_t{256} << 10U;
  Bytes a(kBlock);
  Bytes b(kBlock);
  for (std::uint64_t at = 0; at < left.size(); at += kBlock) {
    const auto size = static_cast<std::size_t>(std::min(kBlock, left.size() - at));
    left.read_at(at, MutableByteSpan(a.data(), size));
    right.read_at(at, MutableByteSpan(b.data(), size));
    if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(size), b.begin())) {
      return false;
    }
  }
  return true;
}

void judge_bytes(bool same, const std::string& why, ObjectDiff& result) {
  result.opaque = true;
  result.verdict = same ? DiffVerdict::kSame : DiffVerdict::kNotKnown;
  result.reason =
      (same ? "compared as bytes: " : "different bytes, which are not interpreted: ") + why;
}

void judge_items(const ReadItem& left, const ReadItem& right, const DiffOptions& options,
                 const DiffSeams& seams, ObjectDiff& result) {
  const BytesItem& a = left.read.item;
  const BytesItem& b = right.read.item;
  if (!a.value || !b.value) {
    return judge_bytes(same_bytes(left.source, right.source),
                       a.value ? b.opaque_because : a.opaque_because, result);
  }
  result.differences = seams.values(*a.value, *b.value, options.differences_max, {});
  if (!result.differences.empty()) result.verdict = DiffVerdict::kDifferent;
  doubt_left_out(left, right, result);
}

void doubt_left_out(const ReadItem& left, const ReadItem& right, ObjectDiff& result) {
  const std::string& what = left.read.left_out.empty() ? right.read.left_out : left.read.left_out;
  if (result.verdict != DiffVerdict::kSame || what.empty()) return;
  if (same_bytes(left.source, right.source)) return;
  result.verdict = DiffVerdict::kNotKnown;
  result.reason = "the same value, but different bytes outside of it: " + what;
}

}  // namespace reprise
