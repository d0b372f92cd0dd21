#include "driver/record/judgement.hpp"

#include <utility>

namespace reprise::driver {

Judgement fail(RulingCode code, std::string reason, SourceLine line) {
  if (!may_state(line, code)) return {};
  return {reports::Verdict::kFail, code, std::move(reason)};
}

Judgement vacuous(RulingCode code, std::string reason, SourceLine line) {
  if (!may_state(line, code)) return {};
  return {reports::Verdict::kInconclusive, code, std::move(reason)};
}

void rule(std::vector<RulingText>& rulings, RulingText ruling) {
  if (may_state(ruling.line, ruling.code)) rulings.push_back(std::move(ruling));
}

Judgement fail_at(const RankRecord& rank, RulingCode code, std::string reason, SourceLine line) {
  Judgement found = fail(code, std::move(reason), line);
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
