#include "properties/unsettled.hpp"
#include "properties/finding_code.hpp"

#include <algorithm>

namespace reprise {
namespace {

constexpr std::size_t kTellingRun = 16;
constexpr std::size_t kTellingPiece = 4;

bool holds(std::byte pattern, const TensorLeaf& leaf, const Piece& piece) {
  const Bytes packed = elements_of(leaf, piece);
  if (packed.size() < kTellingPiece) return false;
  const auto run = static_cast<std::ptrdiff_t>(std::min(kTellingRun, packed.size()));
  return std::search_n(packed.begin(), packed.end(), run, pattern) != packed.end();
}

bool holds(std::byte pattern, const TensorLeaf& leaf) {
  return std::any_of(leaf.pieces.begin(), leaf.pieces.end(),
                     [&](const Piece& piece) { return holds(pattern, leaf, piece); });
}

}  // namespace

judged::Findings judge_settled(const RankState& loaded) {
  judged::Findings findings;
  for (const auto& leaf : loaded.state->tensors) {
    if (holds(kUnsettled, leaf)) {
      findings.push_back(
          {judged::kTornSnapshot, leaf.key,
           "what is stored is what was in the staging buffer before the copy finished",
           loaded.rank});
    }
    if (holds(kUnsettledLoad, leaf)) {
      findings.push_back({judged::kNotFilled, leaf.key,
                          "the load did not wait for its copy out of the staging buffer",
                          loaded.rank});
    }
  }
  return findings;
}

}  // namespace reprise
