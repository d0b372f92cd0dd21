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

bool is_name(char c) { return is_word(c) || c == '_' || c == '.'; }

/// Returns the text with NAME for each name with dots, such as a key's or a file's, and the index
/// after it, and without the place in brackets at the end of an error's text.
std::string without_names(const std::string& text) {
  const std::string kept = text.substr(0, text.find(" [rank"));
  std::string plain;
  for (auto at = kept.begin(); at != kept.end();) {
    const auto end = std::find_if_not(at, kept.end(), is_name);
    if (at == end) {
      plain += *at++;
      continue;
    }
    const auto dot = std::find(at, end, '.');
    const bool dotted = dot != end && dot + 1 != end;  // not the end of a sentence
    plain += dotted ? "NAME" : std::string(at, end);
    at = end;
    if (dotted && at != kept.end() && *at == '[') {
      const auto closed = std::find(at, kept.end(), ']');
      at = closed == kept.end() ? closed : closed + 1;
    }
  }
  return plain;
}

std::string cause_text(const ScenarioResult& result) {
  return without_names(result.failure && !result.failure->cause.empty() ? result.failure->cause
                                                                        : result.reason);
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
    lines.push_back(counted(cause.results.size(), "scenario") + " fail in the same way: " +
                    cause.signature + "; the smallest: " + cause.smallest().name);
  }
  return lines;
}

}  // namespace reprise::reports
