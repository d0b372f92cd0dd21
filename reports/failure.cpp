#include "reports/failure.hpp"

#include <array>
#include <sstream>
#include <utility>

#include "properties/finding_code.hpp"
#include "reports/report.hpp"

namespace reprise::reports {
namespace {

constexpr std::size_t kLabelWidth = 14;

std::string life_text(std::size_t life, const std::string& layout) {
  return std::to_string(life) + (layout.empty() ? "" : " (" + layout + ")");
}

std::string rank_text(const Failure& failure) {
  if (!failure.rank) return "";
  return std::to_string(*failure.rank) +
         (failure.coordinates.empty() ? "" : " = " + failure.coordinates);
}

std::string text_of(const Consequence& follows, const std::optional<std::size_t>& life) {
  std::string where;
  if (follows.life != life) where = "life " + std::to_string(follows.life);
  if (!follows.ranks.empty()) where += (where.empty() ? "" : ", ") + ranks_text(follows.ranks);
  return (where.empty() ? "" : where + ": ") + follows.code + (follows.code.empty() ? "" : ": ") +
         follows.text;
}

}  // namespace

Words words_of(TimelineKind) {
  static constexpr std::array<std::string_view, 8> kWords = {
      "phase", "step", "store", "collective", "commit", "fault", "broken", "end"};
  return {"a kind of event", "kinds", kWords};
}

std::string element_text(const std::string& key, const std::vector<std::int64_t>& index) {
  if (index.empty()) return key;
  std::string text;
  for (const auto i : index) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return key + "[" + text + "]";
}

std::string ranks_text(const std::vector<std::int32_t>& ranks) {
  std::string text;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[first]);
    if (last > first) text += (last == first + 1 ? ", " : "-") + std::to_string(ranks[last]);
    first = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::vector<FailureField> fields_of(const Failure& failure) {
  std::vector<FailureField> fields;
  const auto add = [&fields](const char* name, std::string text) {
    if (!text.empty()) fields.push_back({name, std::move(text)});
  };
  if (failure.life) add("life", life_text(*failure.life, failure.layout));
  if (failure.step) add("step", std::to_string(*failure.step));
  add("phase", failure.phase);
  add("rank", rank_text(failure));
  add("key", element_text(failure.key, failure.index));
  add("saved", failure.saved);
  add("loaded", failure.loaded);
  add("comes from", failure.comes_from);
  for (const auto& follows : failure.consequences) add("then", text_of(follows, failure.life));
  if (failure.consequences_left_out > 0) {
    add("then", std::to_string(failure.consequences_left_out) + " more findings");
  }
  return fields;
}

std::string ending_of(const EarlierTry& earlier) {
  return earlier.code + (earlier.code.empty() ? "" : ": ") + earlier.reason;
}

std::vector<FailureField> fields_of(const ScenarioResult& result) {
  auto fields = result.failure ? fields_of(*result.failure) : std::vector<FailureField>();
  for (const auto& earlier : result.earlier_tries)
    fields.push_back({"earlier try", ending_of(earlier)});
  if (finding_code_named(result.code)) {
    fields.push_back({"explained by", "reprise explain " + result.code});
  }
  return fields;
}

std::string to_block(const ScenarioResult& result) {
  std::ostringstream out;
  const std::string code = result.code.empty() ? name_of(result.verdict) : result.code;
  const Failure failure = result.failure.value_or(Failure{.cause = result.reason});
  out << result.name << ": " << code << (failure.cause.empty() ? "" : ": ") << failure.cause
      << '\n';
  for (const auto& [name, text] : fields_of(result)) {
    out << "  " << name << ':' << std::string(kLabelWidth - name.size() - 1, ' ') << text << '\n';
  }
  if (!result.replay.empty()) out << "  see it again: " << result.replay << '\n';
  return out.str();
}

void put_values(const FirstDifference& first, Failure& failure) {
  failure.rank = first.rank;
  failure.key = first.key;
  failure.index = first.index;
  failure.saved = first.saved;
  failure.loaded = first.loaded;
  failure.comes_from = first.comes_from;
}

void restate_failure(ScenarioResult& result) {
  if (result.verdict == Verdict::kPass || result.verdict == Verdict::kNotRun) {
    result.failure.reset();
    return;
  }
  if (result.failure) return;
  Failure& failure = result.failure.emplace();
  failure.cause = result.reason;
  if (result.first_difference) put_values(*result.first_difference, failure);
}

}  // namespace reprise::reports
