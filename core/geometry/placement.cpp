#include "core/geometry/placement.hpp"

#include <algorithm>

#include "reprise/error.hpp"

namespace reprise {

Interval ceil_chunk(std::int64_t length, std::int64_t parts, std::int64_t index) {
  const std::int64_t chunk = (length + parts - 1) / parts;
  return {std::min(index * chunk, length), std::min((index + 1) * chunk, length)};
}

bool tiles(ChunkRule rule, std::int64_t length, std::int64_t parts) {
  std::int64_t at = 0;
  for (std::int64_t index = 0; index < parts; ++index) {
    const Interval part = rule(length, parts, index);
    if (part.begin != at || part.end < part.begin) return false;
    at = part.end;
  }
  return at == length;
}

Box Placement::box(const Dims& shape, const Mesh& mesh, GroupRank member, ChunkRule rule) const {
  Box box = Box::whole(shape);
  for (std::size_t s = 0; s < splits_.size(); ++s) {
    const Split& split = splits_[s];
    if (split.dim >= shape.size()) {
      throw Error(Code::kLayoutMismatch, "axis " + split.axis + " splits dimension " +
                                             std::to_string(split.dim) + " of a tensor of shape " +
                                             to_string(shape));
    }
    for (std::size_t earlier = 0; earlier < s; ++earlier) {
      if (splits_[earlier].axis == split.axis) {
        throw Error(Code::kLayoutMismatch, "axis " + split.axis + " splits a tensor twice");
      }
    }
    const auto axis = mesh.axis(split.axis);
    if (!axis) continue;
    const Interval part =
        rule(box.extent[split.dim], mesh.axes()[*axis].size, mesh.coordinate(member, *axis));
    box.offset[split.dim] += part.begin;
    box.extent[split.dim] = part.length();
  }
  return box;
}

std::int32_t Placement::replica(const Mesh& mesh, GroupRank member) const {
  std::int32_t replica = 0;
  std::int32_t stride = 1;
  for (AxisIndex a = 0; a < mesh.axes().size(); ++a) {
    const auto& axis = mesh.axes()[a];
    const auto splits = [&axis](const Split& split) { return split.axis == axis.name; };
    if (std::any_of(splits_.begin(), splits_.end(), splits)) continue;
    replica += mesh.coordinate(member, a) * stride;
    stride *= axis.size;
  }
  return replica;
}

std::int32_t Placement::replicas(const Mesh& mesh) const {
  std::int32_t count = mesh.size();
  for (const auto& split : splits_) count /= mesh.axis_size(split.axis);
  return count;
}

std::ostream& operator<<(std::ostream& out, const Placement& placement) {
  if (placement.replicated()) return out << "replicated";
  bool first = true;
  for (const auto& split : placement.splits()) {
    out << (first ? "" : " ") << split.axis << '/' << split.dim;
    first = false;
  }
  return out;
}

}  // namespace reprise
