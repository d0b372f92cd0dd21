#include "reprise/mesh.hpp"

#include "reprise/error.hpp"

namespace reprise {
namespace {

std::int64_t product_of(const std::vector<Axis>& axes) {
  std::int64_t product = 1;
  for (const auto& axis : axes) {
    if (axis.size < 1) {
      throw Error(Code::kLayoutMismatch,
                  "axis " + axis.name + " has size " + std::to_string(axis.size));
    }
    product *= axis.size;
    if (product > (std::int64_t{1} << 30)) {
      throw Error(Code::kLayoutMismatch, "a mesh of more than 2^30 ranks");
    }
  }
  return product;
}

}  // namespace

Mesh::Mesh(std::vector<Axis> axes, Group members)
    : axes_(std::move(axes)), members_(std::move(members)) {
  if (product_of(axes_) != members_.size()) {
    throw Error(Code::kLayoutMismatch, "the axes multiply to " + std::to_string(product_of(axes_)) +
                                           " but the mesh has " + std::to_string(members_.size()) +
                                           " members");
  }
  std::int32_t stride = 1;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (axes_[a].name == axes_[b].name) {
        throw Error(Code::kLayoutMismatch, "axis " + axes_[a].name + " occurs twice in a mesh");
      }
    }
    strides_.push_back(stride);
    stride *= axes_[a].size;
  }
}

Mesh::Mesh(const std::vector<Axis>& axes)
    : Mesh(axes, Group::world(static_cast<std::int32_t>(product_of(axes)))) {}

std::optional<AxisIndex> Mesh::axis(std::string_view name) const {
  for (AxisIndex a = 0; a < axes_.size(); ++a) {
    if (axes_[a].name == name) return a;
  }
  return std::nullopt;
}

std::int32_t Mesh::axis_size(std::string_view name) const {
  const auto found = axis(name);
  return found ? axes_[*found].size : 1;
}

std::int32_t Mesh::coordinate(GroupRank member, std::string_view name) const {
  const auto found = axis(name);
  return found ? coordinate(member, *found) : 0;
}

GroupRank Mesh::member_at(std::span<const std::int32_t> coordinates) const {
  if (coordinates.size() != axes_.size()) {
    throw Error(Code::kUsage, "coordinates: " + std::to_string(coordinates.size()) +
                                  " for a mesh of " + std::to_string(axes_.size()) + " axes");
  }
  std::int32_t member = 0;
  for (AxisIndex a = 0; a < axes_.size(); ++a) {
    if (coordinates[a] < 0 || coordinates[a] >= axes_[a].size) {
      throw Error(Code::kUsage, "coordinates: " + std::to_string(coordinates[a]) + " along axis '" +
                                    axes_[a].name + "', which has 0 to " +
                                    std::to_string(axes_[a].size - 1));
    }
    member += coordinates[a] * strides_[a];
  }
  return {member};
}

Group Mesh::group_along(GroupRank member, std::span<const std::string_view> names) const {
  static_cast<void>(members_.member(member));  // throws if there is no such member
  std::vector<GroupRank> found = {member};
  for (const auto name : names) {  // each axis varies more slowly than the axes before it
    const auto along = axis(name);
    if (!along) continue;
    std::vector<GroupRank> wider;
    for (std::int32_t c = 0; c < axes_[*along].size; ++c) {
      for (const auto base : found) {
        const std::int32_t own = coordinate(base, *along);
        wider.push_back({base.value + (c - own) * strides_[*along]});
      }
    }
    found = std::move(wider);
  }
  std::vector<GlobalRank> ranks;
  ranks.reserve(found.size());
  for (const auto rank : found) ranks.push_back(members_.member(rank));
  return Group(std::move(ranks));
}

Group Mesh::group_along(GroupRank member, std::string_view name) const {
  return group_along(member, std::span(&name, 1));
}

std::ostream& operator<<(std::ostream& out, const Mesh& mesh) {
  bool first = true;
  for (const auto& axis : mesh.axes()) {
    out << (first ? "" : " x ") << axis.name << axis.size;
    first = false;
  }
  return out;
}

}  // namespace reprise
