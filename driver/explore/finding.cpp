#include "driver/explore/finding.hpp"

#include <algorithm>
#include <cctype>

namespace reprise::driver {
namespace {

using reports::SearchFinding;

const SearchFinding* with_signature(std::span<const SearchFinding> findings,
                                    const std::string& signature) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const SearchFinding& one) {
    return one.signature == signature;
  });
  return found == findings.end() ? nullptr : &*found;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string signature_of(const std::string& code, const std::string& reason) {
  std::string plain = code + ": ";
  for (auto at = reason.begin(); at != reason.end();) {
    const auto end = std::find_if_not(at, reason.end(), is_word);
    if (at == end) {
      plain += *at++;
      continue;
    }
    const bool numbered = std::any_of(at, end, is_digit);
    plain += numbered ? "#" : std::string(at, end);
    at = end;
  }
  return plain;
}

std::vector<SearchFinding> resolved_since(std::span<const SearchFinding> earlier,
                                          std::vector<SearchFinding>& findings,
                                          const PassesNow& passes_now) {
  const auto stood = [](const SearchFinding& finding) { return finding.status != "resolved"; };
  for (auto& finding : findings) {
    const SearchFinding* before = with_signature(earlier, finding.signature);
    finding.status = before != nullptr && stood(*before) ? "ongoing" : "new";
  }
  std::vector<SearchFinding> resolved;
  for (const auto& before : earlier) {
    if (!stood(before) || with_signature(findings, before.signature) != nullptr) continue;
    if (passes_now(before)) {
      resolved.push_back(before);
      resolved.back().status = "resolved";
    } else {
      findings.push_back(before);
      findings.back().status = "ongoing";
    }
  }
  return resolved;
}

}  // namespace reprise::driver
