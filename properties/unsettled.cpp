#include "properties/unsettled.hpp"
#include "properties/ruling_code.hpp"

#include <algorithm>

namespace reprise {
namespace {

constexpr std::size_t kTellingRun = 16;
constexpr std::size_t kTellingPiece = 4;

bool holds(std::byte pattern, const TensorLeaf& leaf, const Piece& piece) {
  const std::size_t width = size_of(leaf.dtype);
  Bytes packed(static_cast<std::size_t>(piece.box.elements()) * width);
  if (packed.size() < kTellingPiece) return false;
  const std::byte* first = leaf.data + static_cast<std::size_t>(piece.local) * width;
  copy_strided({first, piece.strides}, {packed.data(), contiguous_strides(piece.box.extent)},
               piece.box.extent, width);
  const auto run = static_cast<std::ptrdiff_t>(std::min(kTellingRun, packed.size()));
  return std::search_n(packed.begin(), packed.end(), run, pattern) != packed.end();
}

bool holds(std::byte pattern, const TensorLeaf& leaf) {
  return std::any_of(leaf.pieces.begin(), leaf.pieces.end(),
                     [&](const Piece& piece) { return holds(pattern, leaf, piece); });
}

}  // namespace

Rulings judge_settled(const RankState& loaded) {
  Rulings rulings;
  for (const auto& leaf : loaded.state->tensors) {
    if (holds(kUnsettled, leaf)) {
      rulings.push_back(
          {judged::kTornSnapshot, leaf.key,
           "what is stored is what was in the staging buffer before the copy finished",
           loaded.rank});
    }
    if (holds(kUnsettledLoad, leaf)) {
      rulings.push_back({judged::kNotFilled, leaf.key,
                         "the load did not wait for its copy out of the staging buffer",
                         loaded.rank});
    }
  }
  return rulings;
}

}  // namespace reprise
