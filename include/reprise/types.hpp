#pragma once
// Types for ranks, steps and bytes that every other header uses.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <span>
#include <vector>

/// Marks namespace blocks whose names the shared library exports. These are the blocks of the
/// public headers. A friend function that is defined outside such a block needs the mark again,
/// because the block's mark does not apply to it.
#define REPRISE_API __attribute__((visibility("default")))

namespace reprise REPRISE_API {

using Bytes = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

/// An integer that does not convert to any other kind of integer. Arithmetic needs an explicit
/// `.value`, which makes every change from one kind of integer to another visible in the code.
template <class Tag, class Rep>
struct TypedInt {
  Rep value{};

  friend constexpr auto operator<=>(TypedInt, TypedInt) = default;
  friend std::ostream& operator<<(std::ostream& out, TypedInt id) { return out << id.value; }
};

/// A process of the job, numbered across the whole world.
using GlobalRank = TypedInt<struct GlobalRankTag, std::int32_t>;
/// A position within one group; meaningless without that group.
using GroupRank = TypedInt<struct GroupRankTag, std::int32_t>;
/// Number of completed training iterations.
using Step = TypedInt<struct StepTag, std::int64_t>;

}  // namespace REPRISE_API

template <class Tag, class Rep>
struct std::hash<reprise::TypedInt<Tag, Rep>> {
  std::size_t operator()(reprise::TypedInt<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
