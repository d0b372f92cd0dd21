#include <algorithm>
#include <map>

#include "core/base/print.hpp"
#include "reports/pages/facts.hpp"
#include "reports/pages/picture.hpp"
#include "reports/pages/pictures.hpp"

namespace reprise::reports {
namespace {

constexpr std::size_t kGenerationsMax = 60;
constexpr std::size_t kGenerationsPerRow = 3;  // as many as a phone's width has room for

/// Returns text such as "loaded by 1, 2".
std::string by_lives(const char* what, const std::vector<std::size_t>& lives) {
  constexpr std::size_t kLivesNamed = 2;
  if (lives.empty()) return "";
  const std::size_t named = std::min(lives.size(), kLivesNamed);
  const std::vector<std::size_t> first(lives.begin(),
                                       lives.begin() + static_cast<std::ptrdiff_t>(named));
  return std::string(what) + " by " + join(first, ", ") +
         (named < lives.size() ? " +" + std::to_string(lives.size() - named) : "");
}

/// Returns text such as "step 4, saved by life 1: damaged, skipped by 2".
std::string generation_line(const Generation& one) {
  std::string line = "step " + std::to_string(one.step) + ", saved by life " +
                     std::to_string(one.life) + ": " + one.state;
  for (const auto& words : {by_lives("loaded", one.loaded_by), by_lives("skipped", one.skipped_by)})
    line += (words.empty() ? "" : ", ") + words;
  return line;
}

/// Returns the state if it is one of the known ones. It is then also a class of the style sheet.
std::string state_look(const std::string& state) {
  const auto states = generation_states();
  const bool known = std::find(states.begin(), states.end(), state) != states.end();
  return known ? "generation " + state : "generation";
}

//  life 0                life 1
//  [ step 2 ] [ step 4 ] [ step 6 ]
//  pruned     damaged    kept
//  loaded ... skipped by 1
std::string strip_svg(const ScenarioResult& result, std::size_t shown) {
  constexpr double kCell = 110;
  constexpr double kRow = 78;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < shown; ++i) lines.push_back(generation_line(result.generations[i]));
  Picture picture("Checkpoints of " + result.name, join(lines, "; "));
  for (std::size_t i = 0; i < shown; ++i) {
    const Generation& one = result.generations[i];
    const std::size_t column = i % kGenerationsPerRow;
    const double x = 4 + kCell * static_cast<double>(column);
    const std::size_t row = i / kGenerationsPerRow;
    const double y = kRow * static_cast<double>(row);
    const bool begins = i == 0 || result.generations[i - 1].life != one.life;
    if (begins || column == 0) {
      picture.text({x, y + 12}, "life " + std::to_string(one.life), "quiet");
    }
    picture.box({{x, y + 17}, kCell - 8, 20}, state_look(one.state), 1, lines[i]);
    picture.text({x + (kCell - 8) / 2, y + 31}, "step " + std::to_string(one.step), "middle");
    std::vector<std::string> words = {one.state, by_lives("loaded", one.loaded_by),
                                      by_lives("skipped", one.skipped_by)};
    std::erase(words, "");
    for (std::size_t w = 0; w < words.size(); ++w) {
      picture.text({x, y + 49 + 12 * static_cast<double>(w)}, words[w]);
    }
  }
  const std::size_t rows = (shown + kGenerationsPerRow - 1) / kGenerationsPerRow;
  return picture.svg(kCell * static_cast<double>(std::min(shown, kGenerationsPerRow)) + 8,
                     kRow * static_cast<double>(rows) + 8);
}

}  // namespace

std::string generations_figure(const ScenarioResult& result) {
  if (result.generations.empty()) return "";
  const std::size_t shown = std::min(result.generations.size(), kGenerationsMax);
  std::string caption =
      "Checkpoints in the order of their saves, what became of each, and the lives that loaded it "
      "or fell back past it.";
  if (const auto more = result.generations.size() - shown; more > 0) {
    caption += " " + counted(more, "more checkpoint") + ".";
  }
  return figure(strip_svg(result, shown), caption);
}

std::string generations_text(const ScenarioResult& result) {
  std::map<std::string, std::uint64_t> states;
  std::uint64_t skipped = 0;
  for (const auto& one : result.generations) {
    ++states[one.state];
    skipped += one.skipped_by.empty() ? 0 : 1;
  }
  std::vector<std::string> texts;
  for (const auto state : generation_states()) {
    const auto at = states.find(std::string(state));
    if (at != states.end()) texts.push_back(with_commas(at->second) + " " + at->first);
  }
  if (skipped > 0) texts.push_back(with_commas(skipped) + " fallen back from");
  return join(texts, ", ");
}

}  // namespace reprise::reports
