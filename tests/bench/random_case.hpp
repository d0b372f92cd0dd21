#pragma once
// Generates small random checkpoints for measurements. Each consists of tensors and two layouts for
// them.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/base/random.hpp"
#include "core/state/state_dict.hpp"

namespace reprise::bench {

/// Limits of a randomly generated case.
struct CaseBounds {
  std::int32_t ranks_min = 1;
  std::int32_t ranks_max = 8;
  std::size_t tensors_min = 20;
  std::size_t tensors_max = 20;
  std::size_t bytes = 24 << 10;  ///< exact number of bytes of all tensors together
};

struct CaseTensor {
  std::string key;
  DType dtype = DType::kUInt8;
  Dims shape;
  std::array<Placement, 2> placement;  ///< the tensor's placement under each of the two layouts

  std::size_t bytes() const { return static_cast<std::size_t>(volume(shape)) * size_of(dtype); }
};

/// Two meshes with the axes tp and dp, in either order, and tensors that are placed on both meshes.
struct RandomCase {
  std::array<std::shared_ptr<const Mesh>, 2> mesh;
  std::vector<CaseTensor> tensors;
};

inline std::int64_t between(Stream& draw, std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(most - least + 1)));
}

inline std::shared_ptr<const Mesh> random_mesh(Stream& draw, const CaseBounds& bounds) {
  const auto ranks = static_cast<std::int32_t>(between(draw, bounds.ranks_min, bounds.ranks_max));
  std::vector<std::int32_t> divisors;
  for (std::int32_t d = 1; d <= ranks; ++d) {
    if (ranks % d == 0) divisors.push_back(d);
  }
  const std::int32_t tp = divisors[draw.below(divisors.size())];
  std::vector<Axis> axes = {{"tp", tp}, {"dp", ranks / tp}};
  if (draw.below(2) == 1) std::swap(axes[0], axes[1]);
  return std::make_shared<const Mesh>(axes);
}

/// Lets each axis split one dimension or none; both axes may split the same dimension. The order of
/// the axes is random.
inline Placement random_placement(Stream& draw, std::size_t rank) {
  std::vector<Split> splits;
  for (const char* axis : {"tp", "dp"}) {
    if (draw.below(3) > 0) splits.push_back({axis, static_cast<std::size_t>(draw.below(rank))});
  }
  if (splits.size() == 2 && draw.below(2) == 1) std::swap(splits[0], splits[1]);
  return Placement(std::move(splits));
}

/// Generates a tensor of at most `bytes_max` bytes. It has one to three dimensions, with lengths
/// that most meshes can't divide evenly.
inline CaseTensor random_tensor(Stream& draw, std::string key, std::size_t bytes_max) {
  constexpr std::array kTypes = {DType::kFloat32,      DType::kBFloat16, DType::kFloat16,
                                 DType::kFloat8E4M3FN, DType::kInt64,    DType::kInt32};
  CaseTensor tensor;
  tensor.key = std::move(key);
  tensor.dtype = kTypes[draw.below(kTypes.size())];
  auto left =
      std::max<std::int64_t>(static_cast<std::int64_t>(bytes_max / size_of(tensor.dtype)), 1);
  for (std::int64_t rank = between(draw, 1, 3); rank > 1; --rank) {
    const std::int64_t length = between(draw, 1, std::min<std::int64_t>(left, 13));
    tensor.shape.push_back(length);
    left /= length;
  }
  tensor.shape.push_back(std::max<std::int64_t>(left - between(draw, 0, 2), 1));
  return tensor;
}

/// Generates a case of exactly `bounds.bytes` bytes. The last tensor gets all bytes that the others
/// do not use.
inline RandomCase random_case(Stream draw, const CaseBounds& bounds) {
  RandomCase made;
  for (auto& mesh : made.mesh) mesh = random_mesh(draw, bounds);
  const auto count =
      static_cast<std::size_t>(between(draw, static_cast<std::int64_t>(bounds.tensors_min),
                                       static_cast<std::int64_t>(bounds.tensors_max)));
  std::size_t left = bounds.bytes;
  for (std::size_t t = 0; t < count; ++t) {
    const std::string key = "layers." + std::to_string(t) + ".mlp.weight";
    if (t + 1 < count) {
      made.tensors.push_back(random_tensor(draw, key, bounds.bytes / count));
    } else {
      made.tensors.push_back({key, DType::kUInt8, {static_cast<std::int64_t>(left)}, {}});
    }
    CaseTensor& tensor = made.tensors.back();
    left -= tensor.bytes();
    for (auto& placement : tensor.placement)
      placement = random_placement(draw, tensor.shape.size());
  }
  return made;
}

/// Returns the state of `rank` under layout `side`, without memory for the elements.
inline StateDict state_of(const RandomCase& made, std::size_t side, GroupRank rank) {
  StateDict state;
  state.tensors.reserve(made.tensors.size());
  const auto& mesh = made.mesh[side];
  for (const auto& tensor : made.tensors) {
    const Placement& placement = tensor.placement[side];
    TensorLeaf& leaf = state.tensors.emplace_back();
    leaf.key = tensor.key;
    leaf.dtype = tensor.dtype;
    leaf.shape = tensor.shape;
    leaf.pieces = {contiguous_piece(placement.box(tensor.shape, *mesh, rank))};
    leaf.replica = placement.replica(*mesh, rank);
    leaf.placed = Placed{mesh, placement};
  }
  return state;
}

}  // namespace reprise::bench
