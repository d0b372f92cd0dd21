#include "properties/content_digest.hpp"

#include "core/base/hash.hpp"
#include "core/geometry/element_digest.hpp"
#include "core/geometry/element_map.hpp"

namespace reprise {
namespace {

template <class Word>
std::uint64_t sum_over(const TensorLeaf& leaf, std::uint64_t key) {
  const ElementDigest<Word> digest{leaf.data, key};
  std::uint64_t sum = 0;
  for (const auto& map : element_maps(leaf.shape, leaf.pieces, leaf.pieces)) {
    for_each_element(map, [&](const ElementPlace& at) { sum += digest(at.global, at.a); });
  }
  return sum;
}

}  // namespace

std::uint64_t host_leaf_digest(const TensorLeaf& leaf, std::uint64_t key) {
  switch (size_of(leaf.dtype)) {
    case 1:
      return sum_over<std::uint8_t>(leaf, key);
    case 2:
      return sum_over<std::uint16_t>(leaf, key);
    case 4:
      return sum_over<std::uint32_t>(leaf, key);
    case 8:
      return sum_over<std::uint64_t>(leaf, key);
    default:
      return sum_over<WideWord>(leaf, key);
  }
}

std::uint64_t content_digest(const StateDict& state, const LeafDigest& of_leaf) {
  std::uint64_t sum = 0;
  for (const auto& leaf : state.tensors) {
    if (leaf.replica != 0) continue;
    const std::uint64_t key =
        mix64(hash_of(std::string_view(leaf.key)), static_cast<std::uint64_t>(leaf.dtype));
    sum += of_leaf(leaf, key);
  }
  return sum;
}

std::uint64_t value_digest(const Value& value) { return mix64(hash_of(value)); }

std::array<std::int64_t, 2> halves_of(std::uint64_t digest) {
  return {static_cast<std::int64_t>(digest & 0xffffffffU),
          static_cast<std::int64_t>(digest >> 32U)};
}

std::uint64_t digest_of(const std::array<std::int64_t, 2>& sums) {
  return static_cast<std::uint64_t>(sums[0]) + (static_cast<std::uint64_t>(sums[1]) << 32U);
}

}  // namespace reprise
