#pragma once
// Makes random choices for the generators of scenarios.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "core/base/random.hpp"

namespace reprise::driver {

/// True with probability 1/`in`.
inline bool chance(Stream& random, std::uint64_t in) { return random.below(in) == 0; }

/// Returns a number from `least` to `most`, both included.
inline std::int64_t number(Stream& random, std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

template <class Range>
const auto& one_of(Stream& random, const Range& range) {
  return range[random.below(std::size(range))];
}

template <class Items>
void shuffle(Stream& random, Items& items) {
  for (std::size_t i = 0; i + 1 < items.size(); ++i) {
    std::swap(items[i], items[i + random.below(items.size() - i)]);
  }
}

}  // namespace reprise::driver
