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

/// States a problem. `file` is the judge's source file, for may_state(); no caller gives it.
Judgement fail(RulingCode code, std::string reason, const char* file = __builtin_FILE());
/// The problem is how this rank's life ended.
Judgement fail_at(const RankRecord& rank, RulingCode code, std::string reason,
                  const char* file = __builtin_FILE());
/// States that the run shows nothing: the verdict is inconclusive.
Judgement vacuous(RulingCode code, std::string reason, const char* file = __builtin_FILE());

/// Adds a ruling of the judge in `file`.
void rule(std::vector<RulingText>& rulings, RulingText ruling, const char* file = __builtin_FILE());

/// Removes the code from the start of a message, because the finding already contains it.
std::string without_code(const std::string& text, RulingCode code);

/// Returns text such as "rank 3".
std::string rank_text(const RankRecord& rank);

}  // namespace reprise::driver
