#pragma once
// Intersects the boxes of two shardings of a tensor: finds the stored boxes that each wanted box
// meets. One crossing serves all tensors that have the same two shardings.

#include <cstdint>
#include <span>
#include <vector>

#include "core/geometry/box_index.hpp"

namespace reprise {

struct Crossing {
  struct Hit {
    std::uint32_t stored;    ///< position of the stored box
    std::uint64_t elements;  ///< number of elements in common
  };

  std::vector<std::size_t> first;  ///< the hits of wanted box b are hits[first[b]..first[b+1])
  std::vector<Hit> hits;

  std::span<const Hit> of(std::size_t wanted) const {
    return std::span(hits).subspan(first[wanted], first[wanted + 1] - first[wanted]);
  }
};

/// Calls visit(Crossing::Hit) for each stored box that `wanted` meets, in the order of `index`.
/// `index` must be built from `stored`. An empty box meets no stored box.
template <class Visit>
void for_each_hit(std::span<const Box> stored, const BoxIndex& index, const Box& wanted,
                  const Visit& visit) {
  index.meet(wanted, [&](std::uint32_t at) {
    const auto common = intersect(stored[at], wanted);
    if (common) visit(Crossing::Hit{at, static_cast<std::uint64_t>(common->elements())});
  });
}

/// Intersects each wanted box with the stored boxes. `index` must be built from `stored`.
Crossing cross(std::span<const Box> stored, const BoxIndex& index, std::span<const Box> wanted);

}  // namespace reprise
