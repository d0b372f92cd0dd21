#pragma once
// Judges a run by its generations: each must have moved on from the one before.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/trend/run_generations.hpp"
#include "core/trend/tensor_facts.hpp"

namespace reprise {

struct TrendFinding {
  Severity severity = Severity::kError;
  std::string code;        ///< such as "STALE_BYTES"
  std::string generation;  ///< the later one of the two that were compared
  std::string message;
  std::vector<std::string> keys = {};  ///< tensors that it concerns

  friend bool operator==(const TrendFinding&, const TrendFinding&) = default;
};

/// One generation, compared with the one before.
struct TrendRow {
  std::string name;
  std::int64_t number = 0;
  std::optional<std::int64_t> iteration;
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
  // Compared with the generation before; 0 for the first.
  std::uint64_t compared = 0;      ///< tensors that both have
  std::uint64_t changed = 0;       ///< of these
  std::uint64_t bytes_shared = 0;  ///< of tensors that are the same
  std::uint64_t weights = 0;  ///< weights that should move: those with moments, if there are any
  std::uint64_t weights_changed = 0;
  std::vector<std::string> unchanged = {};  ///< keys of tensors that are the same
  std::string unread = {};
};

struct TrendReport {
  std::vector<TrendRow> rows;  ///< in order
  std::vector<TrendFinding> findings;
  std::vector<std::string>
      frozen;  ///< weights without moments that never changed, if others have some

  /// Generations that were read and compared with another.
  std::uint64_t compared() const;
  /// Of these, the ones with weights that should have moved. Of others nothing can be said.
  std::uint64_t judged() const;
  /// True if each but the first was judged, and all were read.
  bool all_judged() const;
  bool anything_unread() const;
  bool healthy() const;  ///< no finding is an error
};

/// Judges generations in order. Each is compared with the one before, if both were read; only the
/// last one is kept.
///
/// Errors: STALE_BYTES, where no weight that has moments changed, or no weight at all if none has,
/// unless rounding can have left them all (a warning), or unless their moments moved and the saved
/// learning rate is 0 in both, or in one of two that are a step apart (a note), or it is 0 in one
/// of others, or is not known (a warning); where a weight and its moments are the same, although
/// its step counter went on or there is none; STILL_MOMENTS, where the moments of a weight that
/// changed are the same, and not zero, or all moments are the same of which the weights are not
/// known; STALE_ITERATION, where the iteration that the state names did not go on. Warnings: a
/// weight in float32 or float64 that is the same although its moments changed; moments that are
/// zero although their weight changed; step counters that did not go on although weights changed,
/// or went back. Notes: weights in narrower types that are the same, which rounding can do; weights
/// that the optimizer did not step; tensors that only one of the two has.
class TrendJudge {
 public:
  void add(GenerationFacts generation);
  const TrendReport& report() const { return report_; }

 private:
  void note_frozen(const GenerationFacts& generation);

  TrendReport report_;
  std::optional<GenerationFacts> last_;  ///< that was read
};

/// Reads what is kept of a generation. If it can't be read, GenerationFacts::unread says why.
/// `wanted` says which keys to read.
GenerationFacts facts_of(Store& store, const RunGeneration& generation,
                         const std::function<bool(const std::string&)>& wanted,
                         const SurveyPorts& ports);

/// Reads the generations and judges them.
TrendReport trend(Store& store, const std::vector<RunGeneration>& generations,
                  const std::function<bool(const std::string&)>& wanted, const SurveyPorts& ports);

}  // namespace reprise
