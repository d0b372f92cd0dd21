#pragma once
// Lists every small mesh with every ordered placement, in the engine's types and as plain numbers
// for the reference.

#include <algorithm>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "core/geometry/placement.hpp"
#include "tests/contracts/brute.hpp"

namespace reprise::test {

struct World {
  Mesh mesh;
  brute::Grid grid;
};

inline World world_of(const std::vector<int>& sizes, bool permuted) {
  static constexpr const char* kNames[] = {"tp", "ep", "fsdp"};
  std::vector<Axis> axes;
  brute::Grid grid;
  int count = 1;
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    axes.push_back({kNames[a], sizes[a]});
    grid.axes.emplace_back(kNames[a], sizes[a]);
    count *= sizes[a];
  }
  for (int i = 0; i < count; ++i)
    grid.members.push_back(permuted ? 5 + (i * 7 + 3) % (7 * count + 1) : i);
  std::vector<GlobalRank> members;
  for (const int rank : grid.members) members.push_back({rank});
  return {Mesh(axes, Group(members)), grid};
}

/// Visits meshes with up to `axes_max` axes of sizes 1 .. `size_max`.
template <class Visit>
void for_each_world(int axes_max, int size_max, Visit visit) {
  std::vector<std::vector<int>> todo = {{}};
  for (std::size_t i = 0; i < todo.size(); ++i) {
    const auto sizes = todo[i];
    visit(world_of(sizes, i % 2 == 1));
    if (static_cast<int>(sizes.size()) == axes_max) continue;
    for (int size = 1; size <= size_max; ++size) {
      todo.push_back(sizes);
      todo.back().push_back(size);
    }
  }
}

/// Visits all placements: every ordered choice of axes, combined with every way to assign
/// dimensions to the chosen axes. If the mesh has fewer than two axes, the choices also include an
/// axis that the mesh does not have.
template <class Visit>
void for_each_placement(const World& world, int rank, Visit visit) {
  std::vector<std::string> names;
  for (const auto& [name, size] : world.grid.axes) names.push_back(name);
  if (names.size() < 2) names.emplace_back("absent");
  std::vector<brute::Splits> todo = {{}};
  for (std::size_t i = 0; i < todo.size(); ++i) {
    const auto splits = todo[i];
    std::vector<Split> typed;
    for (const auto& [axis, dim] : splits) typed.push_back({axis, static_cast<std::size_t>(dim)});
    visit(Placement(typed), splits);
    for (const auto& name : names) {
      if (std::any_of(splits.begin(), splits.end(), [&](auto& s) { return s.first == name; }))
        continue;
      for (int dim = 0; dim < rank; ++dim) {
        todo.push_back(splits);
        todo.back().emplace_back(name, dim);
      }
    }
  }
}

inline brute::Numbers numbers(const Dims& dims) { return {dims.begin(), dims.end()}; }

/// True if the element is in the box.
inline bool holds(const Box& box, const brute::Numbers& index) {
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (index[d] < box.offset[d] || index[d] >= box.offset[d] + box.extent[d]) return false;
  }
  return true;
}

}  // namespace reprise::test
