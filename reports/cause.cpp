#include "reports/cause.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"

namespace reprise::reports {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string cause_text(const ScenarioResult& result) {
  return result.failure && !result.failure->cause.empty() ? result.failure->cause : result.reason;
}

bool is_smaller(const ScenarioResult* a, const ScenarioResult* b) {
  const auto size = [](const ScenarioResult& result) {
    return std::tuple(result.incarnations.size(), result.world);
  };
  if (size(*a) != size(*b)) return size(*a) < size(*b);
  return in_natural_order(a->name, b->name);
}

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

std::vector<Cause> causes_of(std::span<const ScenarioResult> results) {
  std::map<std::string, std::vector<const ScenarioResult*>> by_signature;
  for (const auto& result : results) {
    if (result.verdict != Verdict::kFail) continue;
    const std::string phase = result.failure ? result.failure->phase : "";
    const std::string signature = signature_of(result.code, cause_text(result));
    by_signature[signature + (phase.empty() ? "" : ", in the phase " + phase)].push_back(&result);
  }
  std::vector<Cause> causes;
  for (auto& [signature, alike] : by_signature) {
    std::ranges::sort(alike, is_smaller);
    causes.push_back({signature, std::move(alike)});
  }
  std::ranges::sort(causes, [](const Cause& a, const Cause& b) {
    if (a.results.size() != b.results.size()) return a.results.size() > b.results.size();
    return in_natural_order(a.smallest().name, b.smallest().name);
  });
  return causes;
}

std::vector<std::string> shared_causes(std::span<const ScenarioResult> results) {
  std::vector<std::string> lines;
  for (const auto& cause : causes_of(results)) {
    if (cause.results.size() < 2) break;
    lines.push_back(counted(cause.results.size(), "scenario") + " fail alike: " + cause.signature +
                    "; the smallest: " + cause.smallest().name);
  }
  return lines;
}

}  // namespace reprise::reports
