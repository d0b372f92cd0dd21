#pragma once
// Compares a rank's state with the expected state, leaf by leaf and bit for bit; max_delta only
// reports how far values are apart. For the first difference, finds out where the wrong value comes
// from.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/geometry/compare.hpp"
#include "properties/finding.hpp"
#include "properties/global_state.hpp"
#include "properties/origin.hpp"

namespace reprise {

struct FirstMismatch {
  GlobalRank rank;
  std::string key;
  Dims index;         ///< index in the global tensor
  std::string saved;  ///< value and bits, such as "0.125 (0x3e00)"
  std::string loaded;
  /// The source of the loaded value, such as "layers.1.fc1[64, 0], which is rank 1's". If no
  /// rank has the value, says so.
  std::string comes_from;
};

/// The result for one rank.
struct StateEvidence {
  GlobalRank rank;
  std::uint64_t tensors = 0;        ///< number of leaves compared
  Comparison compared;              ///< sums over all elements of the compared leaves
  std::uint64_t values = 0;         ///< number of objects and common states compared
  std::vector<std::string> absent;  ///< keys of saved tensors without a leaf on this rank
  std::optional<FirstMismatch> first;
  judged::Findings findings;
};

/// Which tensors a rank is expected to have: all tensors of the job, or only those of the rank's
/// part of the model (its pipeline stage, its experts). With kItsPart, `absent` lists the missing
/// tensors, and a judge that sees all ranks decides whether that is a fault.
enum class ExpectedTensors : std::uint8_t { kEveryTensor, kItsPart };

struct JudgeOptions {
  ExpectedTensors expected = ExpectedTensors::kEveryTensor;
  /// Keys of objects that are not judged because the job creates them afresh. The keys have no
  /// coordinate.
  std::vector<std::string> skipped_objects;
  /// Returns the common state without the entries that are allowed to differ. Null if every entry
  /// must be equal.
  Value (*comparable)(const Value& common) = nullptr;
  Suspects suspects;
};

/// Compares all leaves of `loaded` with `saved`. Reports KEYSET_ASYMMETRY for a tensor that only
/// `loaded` has, and also for a tensor that only `saved` has if options.expected is kEveryTensor.
/// Reports LOST_OBJECT for an object that only one side has. There is at most one finding per leaf.
StateEvidence judge_state(const GlobalState& saved, const RankState& loaded,
                          const JudgeOptions& options = {});

}  // namespace reprise
