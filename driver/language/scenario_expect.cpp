#include "driver/language/scenario_expect.hpp"

#include <algorithm>
#include <array>

namespace reprise::driver {
namespace {

constexpr std::int64_t kRankMax = 1023;
constexpr std::array<std::string_view, 3> kOutcomes = {"continued", "fell_back", "refused"};

void read_delta(YamlMap& map, std::string_view key, Expectation& /*expected*/) {
  if (map.number(key).value_or(0) == 0) return;
  map.fail(map.node(key), "needs max_delta 0: anything else is a difference");
}

/// Reads outcomes, in the order in which they are declared.
std::optional<std::vector<Outcome>> read_outcomes(YamlMap& map, std::string_view key) {
  const auto words = map.words(key, kOutcomes);
  if (words.empty()) return std::nullopt;
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < kOutcomes.size(); ++i) {
    if (std::find(words.begin(), words.end(), kOutcomes.at(i)) == words.end()) continue;
    outcomes.push_back(static_cast<Outcome>(i));
  }
  return outcomes;
}

/// Learning rates by step.
struct Rates {
  using Map = std::map<std::int64_t, double>;

  std::optional<Map> operator()(YamlMap& map, std::string_view key) const {
    if (!map.has(key)) return std::nullopt;
    YamlMap rates = map.map(key);
    Map read;
    rates.attempt_each(rates.keys(), [&](const std::string& step) {
      const auto number = rates.number(step);
      const bool counts = !step.empty() &&
                          step.find_first_not_of("0123456789") == std::string::npos &&
                          step.size() < 10;
      if (!counts || !number) {
        rates.fail(rates.node(step),
                   "needs learning rates by step under 'learning_rates': {4: 0.01}");
      }
      read[std::stoll(step)] = *number;
    });
    return read;
  }
  void write(YAML::Emitter& out, const Map& value) const {
    out << YAML::Flow << YAML::BeginMap;
    for (const auto& [step, rate] : value) out << YAML::Key << step << YAML::Value << rate;
    out << YAML::EndMap;
  }
};

}  // namespace

std::string_view name_of(Outcome outcome) {
  return kOutcomes.at(static_cast<std::size_t>(outcome));
}

const Rows<Expectation>& expect_rows() {
  using Expect = Expectation;
  using sim::RerunDiagnosis;
  static const Rows<Expect> rows = {
      fixed_row<Expect>("max_delta", Written::kAlways, read_delta,
                        [](YAML::Emitter& out, const Expect&) { out << 0; }),
      fixed_row<Expect>(
          "against", Written::kAlways,
          [](YamlMap& map, std::string_view key, Expect&) { words({"uninterrupted"})(map, key); },
          [](YAML::Emitter& out, const Expect&) { out << "uninterrupted"; }),
      row("refused", &Expect::refusal, &YamlMap::code),
      row("refused_says", &Expect::refusal_says, &YamlMap::text),
      row("elements_at_least", &Expect::elements_least, Whole{1, INT64_MAX}),
      row("ranks_own", &Expect::every_rank_owns, Choice<bool>{{{true, "all"}, {false, "some"}}}),
      row("outcome", &Expect::outcomes, read_outcomes),
      row("loaded_step", &Expect::loaded_step, Whole{0, INT64_MAX}),
      row("diagnosis", &Expect::diagnosis,
          by_name({RerunDiagnosis::kNone, RerunDiagnosis::kCorrectResult,
                   RerunDiagnosis::kTransientError, RerunDiagnosis::kPersistentError})),
      row("replans", &Expect::replans, Whole{0, INT64_MAX}),
      row("skipped", &Expect::skipped, &YamlMap::integers),
      row("learning_rates", &Expect::rates, Rates{}),
      row("log", &Expect::log, &YamlMap::texts),
      row("silent", &Expect::silent, &YamlMap::texts),
      row("empty_ranks", &Expect::empty_ranks, Whole{0, kRankMax}),
  };
  return rows;
}

void read_expect(YamlMap expect, Expectation& expected) {
  read_rows(expect, expect_rows(), expected);
  expect.attempt([&] {
    if (expect.has("refused") || expected.refusal_says.empty()) return;
    expect.fail(expect.node("refused_says"), "has 'says' for a refusal but does not expect one");
  });
  expect.refuse_unknown();
}

const Rows<RecordedDifference>& difference_rows() {
  using First = RecordedDifference;
  static const Rows<First> rows = {
      row("rank", &First::rank, Whole{0, kRankMax}, Written::kAlways),
      row("key", &First::key, &YamlMap::text, Written::kNeeded),
      row("index", &First::index, &YamlMap::integers, Written::kNeeded),
      row("saved", &First::saved, &YamlMap::text, Written::kNeeded),
      row("loaded", &First::loaded, &YamlMap::text, Written::kNeeded),
  };
  return rows;
}

const Rows<Recorded>& recorded_rows() {
  static const Rows<Recorded> rows = {
      row("verdict", &Recorded::verdict, &YamlMap::text, Written::kNeeded),
      row("code", &Recorded::code, &YamlMap::text),
      row("first_difference", &Recorded::first_difference,
          Mapping<RecordedDifference>{.rows = difference_rows(), .in_one_line = false}),
      row("event_hash", &Recorded::event_hash, &YamlMap::text),
      row("commit", &Recorded::commit, &YamlMap::text),
      row("build", &Recorded::build, &YamlMap::text),
      row("mutant", &Recorded::mutant, &YamlMap::text),
      row("seed", &Recorded::seed, Whole{0, INT64_MAX}, Written::kAlways),
  };
  return rows;
}

Recorded read_recorded(YamlMap map) {
  Recorded recorded;
  read_rows(map, recorded_rows(), recorded);
  map.refuse_unknown();
  return recorded;
}

}  // namespace reprise::driver
