#include "core/diff/line_order.hpp"

#include <algorithm>
#include <utility>

#include "core/base/hash.hpp"

namespace reprise {
namespace {

constexpr std::int64_t kNone = -1;

/// The places of digests on the left side.
class Places {
 public:
  explicit Places(std::span<const std::uint64_t> digests) {
    sorted_.reserve(digests.size());
    for (std::size_t i = 0; i < digests.size(); ++i) {
      sorted_.emplace_back(digests[i], static_cast<std::int64_t>(i));
    }
    std::sort(sorted_.begin(), sorted_.end());
    taken_.resize(sorted_.size());
    next_.resize(sorted_.size());
  }

  /// Returns the first place of the digest; kNone if it has none.
  std::int64_t first(std::uint64_t digest) const {
    const auto found = lower(digest);
    return found == sorted_.end() || found->first != digest ? kNone : found->second;
  }
  /// Takes `wished` if the digest is there and not taken, and else its first place that is not.
  std::int64_t take(std::uint64_t digest, std::int64_t wished) {
    const auto wish = std::lower_bound(sorted_.begin(), sorted_.end(), std::pair(digest, wished));
    if (wish != sorted_.end() && *wish == std::pair(digest, wished) && take_at(wish)) return wished;
    const auto begin = lower(digest);
    if (begin == sorted_.end()) return kNone;
    // Those before `next` are taken.
    std::size_t& next = next_[static_cast<std::size_t>(begin - sorted_.begin())];
    for (auto at = begin + static_cast<std::ptrdiff_t>(next);
         at != sorted_.end() && at->first == digest; ++at, ++next) {
      if (take_at(at)) return at->second;
    }
    return kNone;
  }

 private:
  using Sorted = std::vector<std::pair<std::uint64_t, std::int64_t>>;

  Sorted::const_iterator lower(std::uint64_t digest) const {
    return std::lower_bound(sorted_.begin(), sorted_.end(), std::pair(digest, kNone));
  }
  bool take_at(Sorted::const_iterator at) {
    const auto i = static_cast<std::size_t>(at - sorted_.begin());
    if (taken_[i]) return false;
    taken_[i] = true;
    return true;
  }

  Sorted sorted_;
  std::vector<bool> taken_;
  std::vector<std::size_t> next_;  ///< by the first place of a digest
};

bool same_lines(std::vector<std::uint64_t> left, std::vector<std::uint64_t> right) {
  if (left.size() != right.size()) return false;
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  return left == right;
}

std::vector<std::uint64_t> block_digests(std::span<const std::uint64_t> lines, std::size_t size) {
  std::vector<std::uint64_t> digests;
  for (std::size_t begin = 0; begin < lines.size(); begin += size) {
    std::uint64_t digest = 0;
    for (std::size_t i = 0; i < size; ++i) digest = mix64(digest, lines[begin + i]);
    digests.push_back(digest);
  }
  return digests;
}

/// Appends lines to the blocks, and joins them to the last block if they continue it.
void append(Interval right, std::int64_t left, std::vector<LineBlock>& blocks) {
  if (!blocks.empty()) {
    LineBlock& last = blocks.back();
    if (last.right.end == right.begin && last.left + last.right.length() == left) {
      last.right.end = right.end;
      return;
    }
  }
  blocks.push_back({right, left});
}

/// Looks for blocks of one size, from half of all lines on down.
LineOrder of_equal_blocks(std::span<const std::uint64_t> left,
                          std::span<const std::uint64_t> right) {
  for (std::size_t size = left.size() / 2; size > 0; --size) {
    if (left.size() % size != 0) continue;
    const auto from = block_digests(left, size);
    const auto to = block_digests(right, size);
    if (!same_lines(from, to)) continue;
    LineOrder order{.blocks = {}, .permuted = true, .block = static_cast<std::int64_t>(size)};
    Places places(from);
    for (std::size_t i = 0; i < to.size(); ++i) {
      const auto here = static_cast<std::int64_t>(i);
      const std::int64_t begin = here * order.block;
      append({begin, begin + order.block}, places.take(to[i], here) * order.block, order.blocks);
    }
    return order;
  }
  return {};
}

/// Follows blocks of any size.
LineOrder of_any_blocks(std::span<const std::uint64_t> left, std::span<const std::uint64_t> right) {
  const Places places(left);
  LineOrder order;
  std::int64_t before = kNone;  // where the line before this one stands on the left
  for (std::size_t i = 0; i < right.size(); ++i) {
    const auto next = static_cast<std::size_t>(before + 1);
    std::int64_t place = kNone;
    if (before != kNone && next < left.size() && left[next] == right[i]) {
      place = before + 1;
    } else if (i < left.size() && left[i] == right[i]) {
      place = static_cast<std::int64_t>(i);
    } else {
      place = places.first(right[i]);
    }
    before = place;
    const auto here = static_cast<std::int64_t>(i);
    if (place != kNone) append({here, here + 1}, place, order.blocks);
  }
  return order;
}

}  // namespace

std::int64_t LineOrder::found() const {
  std::int64_t lines = 0;
  for (const LineBlock& one : blocks) lines += one.right.length();
  return lines;
}

std::int64_t LineOrder::moved() const {
  std::int64_t lines = 0;
  for (const LineBlock& one : blocks) lines += one.moved() ? one.right.length() : 0;
  return lines;
}

LineOrder order_of(std::span<const std::uint64_t> left, std::span<const std::uint64_t> right) {
  LineOrder any = of_any_blocks(left, right);
  any.permuted = same_lines({left.begin(), left.end()}, {right.begin(), right.end()});
  if (!any.permuted) return any;
  LineOrder equal = of_equal_blocks(left, right);
  // Few blocks of unequal sizes say more than many of one size.
  const bool fewer = equal.block == 0 || static_cast<std::int64_t>(any.blocks.size()) * 4 <=
                                             static_cast<std::int64_t>(left.size()) / equal.block;
  return fewer ? any : equal;
}

std::string pattern_of(const LineOrder& order) {
  std::vector<std::int64_t> from;  // the block on the left, by that on the right
  for (const LineBlock& one : order.blocks) {
    for (std::int64_t at = 0; at < one.right.length(); at += order.block) {
      from.push_back((one.left + at) / order.block);
    }
  }
  const auto count = static_cast<std::int64_t>(from.size());
  const auto is = [&](const auto& expected) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (from[static_cast<std::size_t>(i)] != expected(i)) return false;
    }
    return true;
  };
  if (count == 2) return "exchanged";
  if (is([&](std::int64_t i) { return count - 1 - i; })) return "in reverse order";
  for (std::int64_t shift = 1; shift < count; ++shift) {
    if (from.front() == shift && is([&](std::int64_t i) { return (i + shift) % count; })) {
      return "rotated by " + std::to_string(shift);
    }
  }
  for (std::int64_t rows = 2; count > 4 && rows < count; ++rows) {
    // As a table of blocks, read by columns instead of by rows.
    if (count % rows != 0) continue;
    const std::int64_t columns = count / rows;
    if (is([&](std::int64_t i) { return i % rows * columns + i / rows; })) {
      return "in the order of a transposed table of " + std::to_string(rows) + " x " +
             std::to_string(columns) + " blocks";
    }
  }
  return "permuted";
}

}  // namespace reprise
