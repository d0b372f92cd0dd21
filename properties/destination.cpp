#include "properties/destination.hpp"

#include <algorithm>

#include "core/base/hash.hpp"
#include "properties/finding_code.hpp"
#include "properties/global_state.hpp"

namespace reprise {
namespace {

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
    evidence.findings.push_back({judged::kBitMismatch, leaf.key,
                                 "after the refused load " + to_string(wrong->box) +
                                     " has neither its earlier bits nor poison",
                                 rank});
  }
  return evidence;
}

}  // namespace reprise
