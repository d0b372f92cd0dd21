#include "core/plan/crossing.hpp"

namespace reprise {

Crossing cross(std::span<const Box> stored, const BoxIndex& index, std::span<const Box> wanted) {
  Crossing crossing;
  crossing.first.reserve(wanted.size() + 1);
  crossing.first.push_back(0);
  for (const Box& box : wanted) {
    for_each_hit(stored, index, box,
                 [&](const Crossing::Hit& hit) { crossing.hits.push_back(hit); });
    crossing.first.push_back(crossing.hits.size());
  }
  return crossing;
}

}  // namespace reprise
