#pragma once
// Whose value is this? A wrong element is looked for, with its wrong neighbours, in the state that
// was saved, and then in other states that a suspect might have brought in. Narrow types repeat
// themselves: then the answer says that it is ambiguous.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/codes.hpp"
#include "properties/global_state.hpp"
#include "properties/ruling.hpp"

namespace reprise {

struct Origin {
  Code code = judged::kBitMismatch;
  std::string text;
};

/// The wrong elements from `index` on, as far as they stand side by side; `key` and `index` say
/// where they should have come from.
struct WrongRun {
  std::string key;
  Dims index;
  DType dtype = DType::kFloat32;
  ByteSpan elements;
  std::span<const Piece> pieces;  ///< of the leaf that holds them
};

/// A state that wrong elements may come from at their own place.
struct OtherState {
  std::string what;  ///< "of step 3"
  std::shared_ptr<const GlobalState> state;
  Code code = judged::kStaleBytes;
};

/// Where to look besides the saved state; asked only when something is wrong.
struct Suspects {
  /// Who held which box of that tensor when it was saved, main copies first. Without it the holders
  /// in the saved state count.
  std::function<std::vector<Holder>(const std::string& key)> holders;
  std::function<std::vector<OtherState>()> others;
};

/// ZERO_FILL, NOT_FILLED, TORN_SNAPSHOT (what a copy leaves until it was waited for), WRONG_OWNER
/// (another tensor's), PERMUTED_SHARDS (another rank's shard at the same place within it),
/// PERMUTED_COMPONENTS (another component's of a fused tensor, of which each rank holds equal
/// boxes), SHIFTED_BYTES (another place's of the same tensor), STALE_BYTES or what the other state
/// says; else BIT_MISMATCH.
Origin origin_of(const GlobalState& saved, const WrongRun& wrong, const Suspects& suspects = {});

}  // namespace reprise
