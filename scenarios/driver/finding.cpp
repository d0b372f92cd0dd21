#include "scenarios/driver/finding.hpp"

namespace reprise::driver {

Finding fail(std::string code, std::string reason) {
  return {reports::Verdict::kFail, std::move(code), std::move(reason)};
}

std::string without_code(const std::string& text, const std::string& code) {
  const std::string lead = code + ": ";
  return text.starts_with(lead) ? text.substr(lead.size()) : text;
}

std::string rank_text(const RankRecord& rank) { return "rank " + std::to_string(rank.result.rank); }

}  // namespace reprise::driver
