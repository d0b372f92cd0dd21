#pragma once
// Finds the source of a wrong element. It searches for the element and its wrong neighbours in the
// saved state, then in the other suspected states. Values of narrow types often occur more than
// once: the answer then says that it is ambiguous.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "properties/global_state.hpp"
#include "properties/ruling.hpp"
#include "properties/ruling_code.hpp"

namespace reprise {

struct Origin {
  RulingCode code = judged::kBitMismatch;
  std::string text;
};

/// A run of adjacent wrong elements that starts at `index`; `key` and `index` name the place that
/// their values should have come from.
struct WrongRun {
  std::string key;
  Dims index;
  DType dtype = DType::kFloat32;
  ByteSpan elements;
  std::span<const Piece> pieces;  ///< pieces of the leaf that holds them
};

/// A state in which wrong elements may have the same place.
struct OtherState {
  std::string what;  ///< description: "of step 3"
  std::shared_ptr<const GlobalState> state;
  RulingCode code = judged::kStaleBytes;
};

/// Places to search besides the saved state; called only when something is wrong.
struct Suspects {
  /// Returns the holders of each box of the tensor in the save, main copies first. If not set, uses
  /// the holders in the saved state.
  std::function<std::vector<Holder>(const std::string& key)> holders;
  std::function<std::vector<OtherState>()> others;
};

/// Returns one of ZERO_FILL, NOT_FILLED, TORN_SNAPSHOT (a copy that nobody waited for), WRONG_OWNER
/// (from another tensor), PERMUTED_SHARDS (from another rank's shard, same place within it),
/// PERMUTED_COMPONENTS (from another component of a fused tensor of which each rank holds equal
/// boxes), SHIFTED_BYTES (from another place of the same tensor), STALE_BYTES or the code of the
/// other state; else BIT_MISMATCH.
Origin origin_of(const GlobalState& saved, const WrongRun& wrong, const Suspects& suspects = {});

}  // namespace reprise
