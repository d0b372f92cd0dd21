#pragma once
// Is what a rank holds what it should hold? Leaf by leaf: bits first, max_delta second, and for the
// first difference whose value it really is.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "properties/global_state.hpp"
#include "properties/ruling.hpp"

namespace reprise {

struct FirstDifference {
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
  std::uint64_t tensors = 0;   ///< leaves compared
  std::uint64_t elements = 0;  ///< compared
  std::uint64_t bit_mismatches = 0;
  double max_delta = 0;      ///< may be NaN or infinite
  std::uint64_t values = 0;  ///< objects and common states compared
  std::optional<FirstDifference> first;
  Rulings rulings;

  /// Something was compared and nothing differed.
  bool holds() const { return elements > 0 && bit_mismatches == 0 && rulings.empty(); }
};

struct JudgeOptions {
  /// Objects' keys (without coordinate) that are not judged, because they start anew.
  std::vector<std::string> skipped_objects;
  /// Takes out of a common state what may differ.
  Value (*comparable)(const Value& common) = nullptr;
};

/// Compares all leaves of `loaded` with `saved`. Tensors whose keys are on one side alone are
/// KEYSET_ASYMMETRY, objects LOST_OBJECT; at most one ruling a leaf.
StateEvidence judge_state(const GlobalState& saved, const RankState& loaded,
                          const JudgeOptions& options = {});

}  // namespace reprise
