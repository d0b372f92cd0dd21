#pragma once
// Is what a rank holds what it should hold? Leaf by leaf: bits first, max_delta second, and for the
// first difference whose value it really is.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/geometry/compare.hpp"
#include "properties/global_state.hpp"
#include "properties/origin.hpp"
#include "properties/ruling.hpp"

namespace reprise {

struct FirstMismatch {
  GlobalRank rank;
  std::string key;
  Dims index;         ///< in the global tensor
  std::string saved;  ///< value and bits, "0.125 (0x3e00)"
  std::string loaded;
  std::string comes_from;  ///< "layers.1.fc1[64, 0], which is rank 1's"; or that nobody has it
};

/// Evidence of one rank.
struct StateEvidence {
  GlobalRank rank;
  std::uint64_t tensors = 0;        ///< leaves compared
  Comparison compared;              ///< of all their elements
  std::uint64_t values = 0;         ///< objects and common states compared
  std::vector<std::string> absent;  ///< tensors that were saved and of which this rank has no leaf
  std::optional<FirstMismatch> first;
  Rulings rulings;

  /// Something was compared and nothing differed.
  bool holds() const { return compared.elements > 0 && compared.same() && rulings.empty(); }
};

/// What a rank is asked for: every tensor of the job, or those of its part of the model (a pipeline
/// stage, its experts). What a part lacks is `absent`, for the judge who sees all ranks.
enum class Asked : std::uint8_t { kEveryTensor, kItsPart };

struct JudgeOptions {
  Asked asked = Asked::kEveryTensor;
  /// Objects' keys (without coordinate) that are not judged, because they start anew.
  std::vector<std::string> skipped_objects;
  /// Takes out of a common state what may differ.
  Value (*comparable)(const Value& common) = nullptr;
  Suspects suspects;
};

/// Compares all leaves of `loaded` with `saved`. Tensors whose keys are on one side alone are
/// KEYSET_ASYMMETRY (what was saved and is not there only where every tensor is asked for), objects
/// LOST_OBJECT; at most one ruling a leaf.
StateEvidence judge_state(const GlobalState& saved, const RankState& loaded,
                          const JudgeOptions& options = {});

}  // namespace reprise
