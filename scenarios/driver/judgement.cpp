#include "scenarios/driver/judgement.hpp"

namespace reprise::driver {

Judgement fail(RulingCode code, std::string reason) {
  return {reports::Verdict::kFail, code, std::move(reason)};
}

std::string without_code(const std::string& text, RulingCode code) {
  const std::string lead = std::string(name_of(code)) + ": ";
  return text.starts_with(lead) ? text.substr(lead.size()) : text;
}

std::string rank_text(const RankRecord& rank) { return "rank " + std::to_string(rank.result.rank); }

}  // namespace reprise::driver
