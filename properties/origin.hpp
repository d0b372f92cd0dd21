#pragma once
// Finds the source of a wrong element. Searches for the element and its wrong neighbours in the
// saved state, then in the other suspected states. Values of narrow types often occur more than
// once; the result then says that the source is ambiguous.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "properties/finding.hpp"
#include "properties/finding_code.hpp"
#include "properties/global_state.hpp"

namespace reprise {

struct Origin {
  FindingCode code = judged::kBitMismatch;
  std::string text;
  SourceLine line = SourceLine::here();  ///< where it was decided
};

/// Adjacent wrong elements of the tensor `key`, the first of them at `index`. `elements` has the
/// wrong values.
struct WrongRun {
  std::string key;
  Dims index;
  DType dtype = DType::kFloat32;
  ByteSpan elements;
  std::span<const Piece> pieces;  ///< pieces of the leaf that holds the elements
};

/// Another state that the wrong values may come from, at the same key and index.
struct OtherState {
  std::string what;  ///< for messages, such as "of step 3"
  std::shared_ptr<const GlobalState> state;
  FindingCode code = judged::kStaleBytes;
  SourceLine line = SourceLine::here();  ///< where it was suspected
};

/// Sources to consider in addition to the saved state. The functions are called only if an element
/// is wrong.
struct Suspects {
  /// Returns the holders of each box of the tensor in the save, main copies first. If this function
  /// is empty, the holders in the saved state are used.
  std::function<std::vector<Holder>(const std::string& key)> holders;
  std::function<std::vector<OtherState>()> others;
};

/// Returns the origin of the wrong elements. Its code says where their values come from:
///
///   ZERO_FILL            zeros
///   NOT_FILLED           poison from before the load, or a load's copy that nobody waited for
///   TORN_SNAPSHOT        a save's copy that nobody waited for
///   WRONG_OWNER          another tensor
///   PERMUTED_SHARDS      another rank's shard, at the same position in it
///   PERMUTED_COMPONENTS  another component of the same fused tensor, if a rank's boxes of all
///                        components have equal sizes
///   SHIFTED_BYTES        another index of the same tensor
///   STALE_BYTES          another state; if that state has a code, its code is used instead
///   BIT_MISMATCH         none of these
Origin origin_of(const GlobalState& saved, const WrongRun& wrong, const Suspects& suspects = {});

}  // namespace reprise
