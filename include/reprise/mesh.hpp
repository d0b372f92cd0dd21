#pragma once
// Defines groups of ranks, meshes of ranks with named axes, and the splits of tensors along axes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/types.hpp"

namespace reprise REPRISE_API {

/// An ordered list of global ranks. Two groups are the same if their lists are equal.
class Group {
 public:
  /// A rank's position in `members` is its rank within the group. No rank may appear twice.
  explicit Group(std::vector<GlobalRank> members);
  /// Returns the group of ranks 0 .. size-1. Throws USAGE for a negative size.
  static Group world(std::int32_t size);

  std::int32_t size() const { return static_cast<std::int32_t>(members_.size()); }
  const std::vector<GlobalRank>& members() const { return members_; }
  /// Returns the global rank of a member. Throws USAGE unless `rank` is one of 0 .. size()-1.
  GlobalRank member(GroupRank rank) const;
  std::optional<GroupRank> rank_of(GlobalRank rank) const;

  friend bool operator==(const Group&, const Group&) = default;
  friend REPRISE_API std::ostream& operator<<(std::ostream& out, const Group& group);

 private:
  std::vector<GlobalRank> members_;
};

struct Axis {
  std::string name;
  std::int32_t size = 1;

  friend bool operator==(const Axis&, const Axis&) = default;
};

/// Index of an axis in its mesh.
using AxisIndex = std::size_t;

/// A grid of ranks with named axes.
///
///   order "tp-dp", tp 2, dp 2 (the first axis varies fastest, as in Megatron's --rank-order):
///
///            tp 0   tp 1
///     dp 0    0      1          coordinate of rank 2: tp 0, dp 1
///     dp 1    2      3          group of rank 2 along tp: {2 3}
class Mesh {
 public:
  /// Assigns coordinates to `members` in order; the first of `axes` varies fastest. Throws
  /// LAYOUT_MISMATCH if the product of the sizes is not the number of members, or if a name is
  /// repeated.
  Mesh(std::vector<Axis> axes, Group members);
  /// Makes a mesh of the ranks 0 .. n-1, where n is the product of the axis sizes.
  explicit Mesh(const std::vector<Axis>& axes);

  const std::vector<Axis>& axes() const { return axes_; }
  const Group& members() const { return members_; }
  std::int32_t size() const { return members_.size(); }
  std::optional<AxisIndex> axis(std::string_view name) const;
  /// Returns the size of the axis; 1 if no axis has that name.
  std::int32_t axis_size(std::string_view name) const;

  /// Returns the coordinate of `member` along one axis. Computes it without a search.
  std::int32_t coordinate(GroupRank member, AxisIndex axis) const {
    return member.value / strides_[axis] % axes_[axis].size;
  }
  /// Returns the coordinate of `member` along the axis; 0 if no axis has that name.
  std::int32_t coordinate(GroupRank member, std::string_view axis) const;
  /// Returns the member at these coordinates. Throws USAGE unless there is one coordinate per axis,
  /// each within the size of its axis.
  GroupRank member_at(std::span<const std::int32_t> coordinates) const;
  /// Returns the members that differ from `member` only along the named axes; the first name varies
  /// fastest. Names that the mesh lacks are ignored. Throws USAGE if the mesh does not contain
  /// `member`.
  Group group_along(GroupRank member, std::span<const std::string_view> names) const;
  Group group_along(GroupRank member, std::string_view name) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;
  /// Prints "tp2 x dp2".
  friend REPRISE_API std::ostream& operator<<(std::ostream& out, const Mesh& mesh);

 private:
  std::vector<Axis> axes_;
  std::vector<std::int32_t> strides_;
  Group members_;
};

/// Says that `axis` splits dimension `dim`, by the ceil-chunk rule of torch.chunk. In a list of
/// splits, each split divides what the splits before it produced. Ranks
/// that differ only along an axis that splits nothing hold replicas.
struct Split {
  std::string axis;     ///< name of a mesh axis; an axis that the mesh lacks counts as size 1
  std::size_t dim = 0;  ///< dimension of the tensor

  friend bool operator==(const Split&, const Split&) = default;
};

}  // namespace REPRISE_API
