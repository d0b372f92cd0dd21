#pragma once
// Generators of shapes, boxes, meshes and placements. Everything shrinks: to fewer dimensions,
// smaller extents, fewer ranks, fewer splits.

#include <rapidcheck.h>

#include <memory>
#include <string>
#include <vector>

#include "core/geometry/box.hpp"
#include "core/geometry/placement.hpp"

namespace reprise::laws {

inline std::int64_t any_from(std::int64_t least, std::int64_t most) {
  return *rc::gen::inRange<std::int64_t>(least, most + 1);
}
inline std::size_t any_below(std::size_t bound) { return *rc::gen::inRange<std::size_t>(0, bound); }

struct ShapeLimits {
  std::int64_t ndim_least = 0;
  std::int64_t ndim_most = 3;
  std::int64_t extent_least = 0;
  std::int64_t extent_most = 6;
};

inline rc::Gen<Dims> shapes(const ShapeLimits& limits = {}) {
  return rc::gen::exec([limits] {
    Dims shape;
    for (auto n = any_from(limits.ndim_least, limits.ndim_most); n > 0; --n) {
      shape.push_back(any_from(limits.extent_least, limits.extent_most));
    }
    return shape;
  });
}

/// Boxes within a tensor of this shape; some are empty.
inline rc::Gen<Box> boxes_within(const Dims& shape) {
  return rc::gen::exec([shape] {
    Box box = Box::whole(shape);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      box.offset[d] = any_from(0, shape[d]);
      box.extent[d] = any_from(0, shape[d] - box.offset[d]);
    }
    return box;
  });
}

/// Lists of disjoint boxes that cover a tensor of this shape, made by at most `cuts_most` cuts.
/// Some boxes may be empty.
inline rc::Gen<std::vector<Box>> tilings_of(const Dims& shape, std::int64_t cuts_most = 6) {
  return rc::gen::exec([shape, cuts_most] {
    std::vector<Box> boxes = {Box::whole(shape)};
    for (auto cuts = shape.empty() ? 0 : any_from(0, cuts_most); cuts > 0; --cuts) {
      Box& box = boxes[any_below(boxes.size())];
      const std::size_t d = any_below(shape.size());
      const auto at = any_from(0, box.extent[d]);
      Box rest = box;
      rest.offset[d] += at;
      rest.extent[d] -= at;
      box.extent[d] = at;
      boxes.push_back(rest);
    }
    return boxes;
  });
}

using MeshPtr = std::shared_ptr<const Mesh>;

/// Meshes of 1 to 12 ranks with up to three axes.
inline rc::Gen<MeshPtr> meshes() {
  return rc::gen::exec([] {
    std::vector<Axis> axes;
    std::int64_t ranks = 1;
    for (const auto* name : {"tp", "dp", "pp"}) {
      const auto size = any_from(1, std::min<std::int64_t>(4, 12 / ranks));
      ranks *= size;
      axes.push_back({name, static_cast<std::int32_t>(size)});
    }
    return std::make_shared<const Mesh>(axes);
  });
}

/// Placements of a tensor with `ndim` dimensions on the mesh. Axes may split a dimension together,
/// in either order, or split nothing.
inline rc::Gen<Placement> placements(const MeshPtr& mesh, std::size_t ndim) {
  return rc::gen::exec([mesh, ndim] {
    std::vector<Split> splits;
    for (const auto& axis : mesh->axes()) {
      const std::size_t choice = any_below(ndim + 1);
      if (choice == 0) continue;
      splits.push_back({axis.name, choice - 1});
    }
    if (splits.size() > 1 && any_from(0, 1) == 1) std::swap(splits.front(), splits.back());
    return Placement(std::move(splits));
  });
}

}  // namespace reprise::laws
