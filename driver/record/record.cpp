#include "driver/record/record.hpp"

#include <array>
#include <utility>

namespace reprise::driver {

reports::Words words_of(Ending) {
  static constexpr std::array<std::string_view, 5> kWords = {"returned", "failed", "defect", "hung",
                                                             "lost"};
  return {"an ending", "endings", kWords};
}

bool is_logged(const LifeRecord& life, std::string_view text) {
  for (const auto& rank : life.ranks) {
    for (const auto& line : rank.log) {
      if (line.find(text) != std::string::npos) return true;
    }
  }
  return false;
}

std::string rank_text(const RankRecord& rank) { return "rank " + std::to_string(rank.result.rank); }

std::optional<Finding> fail_at(const RankRecord& rank, FindingCode code, std::string text,
                               SourceLine line) {
  auto found = judged::fail(code, std::move(text), line);
  if (!found) return found;
  found->rank = GlobalRank{rank.result.rank};
  found->phase = rank.phase;
  found->step = rank.last_step;
  return found;
}

reports::Verdict verdict_of(const std::optional<Finding>& found) {
  if (!found) return reports::Verdict::kPass;
  return found->fails() ? reports::Verdict::kFail : reports::Verdict::kInconclusive;
}

}  // namespace reprise::driver
