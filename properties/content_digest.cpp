#include "properties/content_digest.hpp"

#include "core/base/hash.hpp"

namespace reprise {
namespace {

std::uint64_t piece_digest(const TensorLeaf& leaf, const Piece& piece, std::uint64_t key) {
  const std::size_t width = size_of(leaf.dtype);
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < piece.box.elements(); ++i) {
    const Dims within = index_at(i, piece.box.extent);
    Dims index = piece.box.offset;
    std::int64_t local = piece.local;
    for (std::size_t d = 0; d < within.size(); ++d) {
      index[d] += within[d];
      local += within[d] * piece.strides[d];
    }
    const std::byte* element = leaf.data + static_cast<std::size_t>(local) * width;
    const auto at = static_cast<std::uint64_t>(linear_index(index, leaf.shape));
    sum += mix64(mix64(key, at), hash_of(ByteSpan(element, width)));
  }
  return sum;
}

}  // namespace

std::uint64_t content_digest(const StateDict& state) {
  std::uint64_t sum = 0;
  for (const auto& leaf : state.tensors) {
    if (leaf.replica != 0) continue;
    const std::uint64_t key =
        mix64(hash_of(std::string_view(leaf.key)), static_cast<std::uint64_t>(leaf.dtype));
    for (const auto& piece : leaf.pieces) sum += piece_digest(leaf, piece, key);
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
