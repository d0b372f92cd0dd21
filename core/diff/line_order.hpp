#pragma once
// Finds where the lines of one tensor stand in another, by digests of the lines: rows, columns, or
// slices along any dimension. Pure.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/geometry/box.hpp"

namespace reprise {

/// Lines of the right side that are adjacent on both sides, in the same order.
struct LineBlock {
  Interval right;
  std::int64_t left = 0;  ///< where they begin on the left side

  bool moved() const { return right.begin != left; }
  friend bool operator==(const LineBlock&, const LineBlock&) = default;
};

struct LineOrder {
  std::vector<LineBlock> blocks;  ///< by their place on the right; as long as they can be
  /// The right side has all lines of the left side, each once.
  bool permuted = false;
  /// If it is a permutation of blocks of one size, which begin at multiples of it: the largest such
  /// size. Otherwise 0.
  std::int64_t block = 0;

  std::int64_t found() const;  ///< lines that are in blocks
  std::int64_t moved() const;  ///< those of them that stand at another place

  friend bool operator==(const LineOrder&, const LineOrder&) = default;
};

/// Returns how lines of the right side are lines of the left side, given the digests of both. Of
/// several lines with one digest, that which continues a block is preferred, then the one at the
/// same place.
LineOrder order_of(std::span<const std::uint64_t> left, std::span<const std::uint64_t> right);

/// Returns what pattern a permutation of blocks has, such as "in reverse order"; "permuted" if it
/// has none that is known. `order.block` must not be 0.
std::string pattern_of(const LineOrder& order);

}  // namespace reprise
