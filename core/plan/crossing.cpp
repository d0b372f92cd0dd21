#include "core/plan/crossing.hpp"

namespace reprise {

Crossing cross(std::span<const Box> stored, const BoxIndex& index, std::span<const Box> wanted) {
  Crossing crossing;
  crossing.first.reserve(wanted.size() + 1);
  crossing.first.push_back(0);
  for (const Box& box : wanted) {
    index.meet(box, [&](std::uint32_t at) {
      const auto common = intersect(stored[at], box);
      if (common) crossing.hits.push_back({at, static_cast<std::uint64_t>(common->elements())});
    });
    crossing.first.push_back(crossing.hits.size());
  }
  return crossing;
}

}  // namespace reprise
