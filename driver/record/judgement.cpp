#include "driver/record/judgement.hpp"

namespace reprise::driver {

Judgement fail(RulingCode code, std::string reason) {
  return {reports::Verdict::kFail, code, std::move(reason)};
}

Judgement fail_at(const RankRecord& rank, RulingCode code, std::string reason) {
  Judgement found = fail(code, std::move(reason));
  found.rank = rank.result.rank;
  found.phase = rank.phase;
  found.step = rank.last_step;
  return found;
}

std::string without_code(const std::string& text, RulingCode code) {
  const std::string lead = std::string(name_of(code)) + ": ";
  return text.starts_with(lead) ? text.substr(lead.size()) : text;
}

std::string rank_text(const RankRecord& rank) { return "rank " + std::to_string(rank.result.rank); }

}  // namespace reprise::driver
