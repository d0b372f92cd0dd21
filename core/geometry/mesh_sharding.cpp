#include "core/geometry/mesh_sharding.hpp"

#include <array>
#include <cstddef>
#include <string>

#include "core/geometry/placement.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

[[noreturn]] void fail(Code code, const std::string& message) { throw Error(code, message); }

[[noreturn]] void refuse_factor(std::int64_t factor) {
  fail(Code::kUnsupported, "a strided shard with split factor " + std::to_string(factor) +
                               ", which is not the size of what it divides");
}

void check(const MeshSharding& sharding, const std::vector<std::int64_t>& coordinates) {
  if (sharding.shape.size() > kMaxNdim) {
    fail(Code::kUnsupported,
         "a shard of a tensor of more than " + std::to_string(kMaxNdim) + " dimensions");
  }
  if (sharding.placements.size() != sharding.mesh.size() ||
      coordinates.size() != sharding.mesh.size()) {
    fail(Code::kTornFile, "a mesh of " + std::to_string(sharding.mesh.size()) +
                              " dimensions with " + std::to_string(sharding.placements.size()) +
                              " placements and " + std::to_string(coordinates.size()) +
                              " coordinates");
  }
  for (std::size_t m = 0; m < coordinates.size(); ++m) {
    if (coordinates[m] < 0 || coordinates[m] >= sharding.mesh[m]) {
      fail(Code::kTornFile, "coordinate " + std::to_string(coordinates[m]) +
                                " in a mesh dimension of size " + std::to_string(sharding.mesh[m]));
    }
  }
  for (const std::int64_t extent : sharding.shape) {
    if (extent < 0) fail(Code::kTornFile, "a negative extent in the shape of a tensor");
  }
}

}  // namespace

ShardPlace place_of_member(const MeshSharding& sharding,
                           const std::vector<std::int64_t>& coordinates) {
  check(sharding, coordinates);
  const auto ndim = static_cast<std::int64_t>(sharding.shape.size());
  // For each dimension of the tensor, the mesh dimensions that cut it, in the order of the cuts.
  std::array<std::vector<std::size_t>, kMaxNdim> cuts;
  for (std::size_t m = sharding.mesh.size(); m-- > 0;) {
    const MeshPlacement& placement = sharding.placements[m];
    if (placement.kind == MeshPlacement::Kind::kReplicate) continue;
    const std::int64_t dim = placement.dim < 0 ? placement.dim + ndim : placement.dim;
    if (dim < 0 || dim >= ndim) {
      fail(Code::kTornFile, "a placement along dimension " + std::to_string(placement.dim) +
                                " of a tensor of " + std::to_string(ndim));
    }
    auto& order = cuts.at(static_cast<std::size_t>(dim));
    const bool strided = placement.kind == MeshPlacement::Kind::kStridedShard;
    const std::int64_t factor = strided ? placement.split_factor : 1;
    std::size_t before = 0;
    std::int64_t parts = 1;
    while (before < order.size() && parts < factor) {
      if (__builtin_mul_overflow(parts, sharding.mesh[order[before++]], &parts))
        refuse_factor(factor);
    }
    if (parts != factor) refuse_factor(factor);
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(before), m);
  }
  Box box = Box::whole(Dims(sharding.shape));
  for (std::size_t d = 0; d < sharding.shape.size(); ++d) {
    for (const std::size_t m : cuts.at(d)) {
      const Interval part = ceil_chunk(box.extent[d], sharding.mesh[m], coordinates[m]);
      box.offset[d] += part.begin;
      box.extent[d] = part.length();
    }
  }
  return {Dims(sharding.shape), box};
}

}  // namespace reprise
