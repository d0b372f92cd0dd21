#include "properties/destination.hpp"

#include <algorithm>

#include "core/base/hash.hpp"
#include "properties/ruling_code.hpp"

namespace reprise {
namespace {

Bytes elements_of(const TensorLeaf& leaf, const Piece& piece) {
  const std::size_t width = size_of(leaf.dtype);
  Bytes packed(static_cast<std::size_t>(piece.box.elements()) * width);
  copy_strided({leaf.data + static_cast<std::size_t>(piece.local) * width, piece.strides},
               {packed.data(), contiguous_strides(piece.box.extent)}, piece.box.extent, width);
  return packed;
}

bool is_poison(const Bytes& elements) {
  return std::all_of(elements.begin(), elements.end(),
                     [](std::byte one) { return one == kLoadPoison; });
}

}  // namespace

Destination::Destination(const StateDict& before) {
  for (const auto& leaf : before.tensors) {
    for (const auto& piece : leaf.pieces) {
      pieces_[{leaf.key, piece.box}] = hash_of(ByteSpan(elements_of(leaf, piece)));
    }
  }
}

RefusalEvidence Destination::refused(GlobalRank rank, const StateDict& after) const {
  RefusalEvidence evidence;
  for (const auto& leaf : after.tensors) {
    if (leaf.pieces.empty()) continue;
    ++evidence.tensors;
    const Piece* wrong = nullptr;
    for (const auto& piece : leaf.pieces) {
      const Bytes elements = elements_of(leaf, piece);
      const auto before = pieces_.find({leaf.key, piece.box});
      const bool same = before != pieces_.end() && before->second == hash_of(ByteSpan(elements));
      if (!same && !is_poison(elements) && wrong == nullptr) wrong = &piece;
      evidence.elements += static_cast<std::uint64_t>(piece.box.elements());
    }
    if (wrong == nullptr) continue;
    evidence.rulings.push_back({judged::kBitMismatch, leaf.key,
                                "after the refused load " + to_string(wrong->box) +
                                    " has neither its earlier bits nor poison",
                                rank});
  }
  return evidence;
}

}  // namespace reprise
