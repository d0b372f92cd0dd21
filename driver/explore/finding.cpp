#include "driver/explore/finding.hpp"

#include <algorithm>

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

}  // namespace

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
