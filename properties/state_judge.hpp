#pragma once
// Compares a rank's state with the expected one, leaf by leaf: first the bits, then max_delta, and
// for the first difference the real source of the value.

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
  Dims index;         ///< index in the global tensor
  std::string saved;  ///< value and bits, "0.125 (0x3e00)"
  std::string loaded;
  std::string comes_from;  ///< "layers.1.fc1[64, 0], which is rank 1's"; or says that nobody has it
};

/// Evidence of one rank.
struct StateEvidence {
  GlobalRank rank;
  std::uint64_t tensors = 0;        ///< leaves compared
  Comparison compared;              ///< over all elements of these leaves
  std::uint64_t values = 0;         ///< objects and common states compared
  std::vector<std::string> absent;  ///< saved tensors of which this rank has no leaf
  std::optional<FirstMismatch> first;
  Rulings rulings;

  /// True if something was compared and nothing differed.
  bool holds() const { return compared.elements > 0 && compared.same() && rulings.empty(); }
};

/// Tensors expected on a rank: all of the job's, or those of its part of the model (a pipeline
/// stage, its experts). `absent` lists the missing ones for the judge that sees all ranks.
enum class ExpectedTensors : std::uint8_t { kEveryTensor, kItsPart };

struct JudgeOptions {
  ExpectedTensors expected = ExpectedTensors::kEveryTensor;
  /// Keys of objects (without coordinate) that are not judged because they start again.
  std::vector<std::string> skipped_objects;
  /// Removes the entries of a common state that may differ.
  Value (*comparable)(const Value& common) = nullptr;
  Suspects suspects;
};

/// Compares all leaves of `loaded` with `saved`. A tensor on one side only is KEYSET_ASYMMETRY (if
/// it was saved but not loaded, only when every tensor is expected), such an object is LOST_OBJECT.
/// At most one ruling per leaf.
StateEvidence judge_state(const GlobalState& saved, const RankState& loaded,
                          const JudgeOptions& options = {});

}  // namespace reprise
