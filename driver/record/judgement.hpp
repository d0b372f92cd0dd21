#pragma once
// Defines the reason for a verdict: the first problem that was found, or no problem.

#include <cstdint>
#include <optional>
#include <string>

#include "driver/record/record.hpp"
#include "properties/ruling_code.hpp"

namespace reprise::driver {

struct Judgement {
  reports::Verdict verdict = reports::Verdict::kPass;
  std::optional<RulingCode> code = {};  ///< code of the problem
  std::string reason = {};
  /// Life with the problem; empty if the problem concerns several lives.
  std::optional<std::size_t> life = {};
  std::optional<std::int32_t> rank = {};  ///< rank with the problem
  std::string key = {};                   ///< key of the tensor or object with the problem
  std::string phase = {};                 ///< see RankRecord::phase; also "store", "command"
  std::optional<std::int64_t> step = {};  ///< iteration of the job when the problem was found
};

/// States a problem. `line` is where the judge does so, for may_state().
Judgement fail(RulingCode code, std::string reason, SourceLine line = SourceLine::here());
/// The problem is how this rank's life ended.
Judgement fail_at(const RankRecord& rank, RulingCode code, std::string reason,
                  SourceLine line = SourceLine::here());
/// States that the run shows nothing: the verdict is inconclusive.
Judgement vacuous(RulingCode code, std::string reason, SourceLine line = SourceLine::here());

/// Adds a ruling, past may_state().
void rule(std::vector<RulingText>& rulings, RulingText ruling);

/// Removes the code from the start of a message, because the finding already contains it.
std::string without_code(const std::string& text, RulingCode code);

/// Returns text such as "rank 3".
std::string rank_text(const RankRecord& rank);

}  // namespace reprise::driver
