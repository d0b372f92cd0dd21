#include "reports/cause.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

#include "core/base/natural_order.hpp"

namespace reprise::reports {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name(char c) { return is_word(c) || c == '_' || c == '.'; }

/// Returns the text with NAME for each name with dots, such as a key's or a file's, and the index
/// after it, with one number for a list of ranks, such as "{0 1 2}", and without the place in
/// brackets at the end of an error's text.
std::string without_names(const std::string& text) {
  std::string kept = text.substr(0, text.find(" [rank"));
  for (auto at = kept.find('{'); at != std::string::npos; at = kept.find('{', at + 1)) {
    const auto end = kept.find_first_not_of("0123456789 ", at + 1);
    if (end != std::string::npos && kept[end] == '}') kept.replace(at, end - at, "{0");
  }
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

std::string signature_of(const ScenarioResult& result) {
  const std::string phase = result.failure ? result.failure->phase : "";
  return signature_of(result.code, cause_text(result)) +
         (phase.empty() ? "" : ", in the phase " + phase);
}

bool is_smaller(const ScenarioResult& a, const ScenarioResult& b) {
  const auto size = [](const ScenarioResult& result) {
    return std::tuple(result.lives.size(), result.world);
  };
  if (size(a) != size(b)) return size(a) < size(b);
  return in_natural_order(a.name, b.name);
}

std::vector<Cause> causes_of(std::span<const ScenarioResult> results) {
  std::map<std::string, std::vector<const ScenarioResult*>> by_signature;
  for (const auto& result : results) {
    if (result.verdict == Verdict::kFail) by_signature[signature_of(result)].push_back(&result);
  }
  std::vector<Cause> causes;
  for (auto& [signature, alike] : by_signature) {
    std::ranges::sort(alike, [](const auto* a, const auto* b) { return is_smaller(*a, *b); });
    causes.push_back({std::move(alike)});
  }
  std::ranges::sort(causes, [](const Cause& a, const Cause& b) {
    if (a.results.size() != b.results.size()) return a.results.size() > b.results.size();
    return in_natural_order(a.smallest().name, b.smallest().name);
  });
  return causes;
}

}  // namespace reprise::reports
