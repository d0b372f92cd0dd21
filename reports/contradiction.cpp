#include "reports/contradiction.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

#include "core/base/print.hpp"

namespace reprise::reports {
namespace {

/// Layout of a life that is a command and not a job.
constexpr std::string_view kCommand = "command";

std::string life_text(std::size_t life) { return "life " + std::to_string(life); }

/// Returns the exit codes with which a life of a scenario that passed can have that outcome: 16 and
/// 17 are a job's own, and so is 1 of a job that stops because of a wrong result. A trainer may end
/// well although a judge refuses what it did.
std::span<const int> exit_codes_of(LifeOutcome outcome) {
  static constexpr int kRan[] = {0, 16, 17};
  static constexpr int kLoaded[] = {0, 1, 16, 17};
  static constexpr int kRefused[] = {0, 1};
  static constexpr int kCut[] = {1};
  switch (outcome) {
    case LifeOutcome::kRan:
      return kRan;
    case LifeOutcome::kContinued:
    case LifeOutcome::kFellBack:
      return kLoaded;
    case LifeOutcome::kRefused:
      return kRefused;
    case LifeOutcome::kCutShort:
      return kCut;
    case LifeOutcome::kFailed:
      break;
  }
  return {};
}

/// Returns the number of ranks that a layout such as "tp2 ep2 dp3" or "a: tp2 on 0 1, b: dp2 on 2
/// 3" needs; nothing if the text is no layout.
std::optional<std::int64_t> ranks_of_layout(std::string_view layout) {
  std::int64_t product = 1;
  std::int64_t ranks = 0;
  bool listed = false;  // the ranks of a module are listed after "on"
  while (!layout.empty()) {
    const auto end = std::min(layout.find(' '), layout.size());
    std::string_view word = layout.substr(0, end);
    layout.remove_prefix(std::min(end + 1, layout.size()));
    if (word == "on") {
      listed = true;
      continue;
    }
    if (word.ends_with(':')) {
      listed = false;
      continue;
    }
    if (word.ends_with(',')) word.remove_suffix(1);
    const auto digits = std::min(word.find_first_of("0123456789"), word.size());
    std::int64_t number = 0;
    const auto read = std::from_chars(word.data() + digits, word.data() + word.size(), number);
    if (read.ec != std::errc() || read.ptr != word.data() + word.size()) return std::nullopt;
    const std::string_view axis = word.substr(0, digits);
    if (listed) {
      if (!axis.empty()) return std::nullopt;
      ranks = std::max(ranks, number + 1);
    } else if (axis == "tp" || axis == "cp" || axis == "dp" || axis == "pp") {
      if (number <= 0 || number > std::numeric_limits<std::int32_t>::max() / product) {
        return std::nullopt;
      }
      product *= number;
    }
  }
  return ranks > 0 ? ranks : product;
}

std::string in_lives(const ScenarioResult& result) {
  if (result.incarnations.empty()) return "it has no life";
  std::vector<std::string> layouts;
  for (std::size_t i = 0; i < result.incarnations.size(); ++i) {
    const Incarnation& life = result.incarnations[i];
    layouts.push_back(life.layout);
    const auto codes = exit_codes_of(life.outcome);
    if (std::ranges::find(codes, life.exit_code) == codes.end()) {
      return life_text(i) + " has the outcome '" + name_of(life.outcome) +
             "', with the exit code " + std::to_string(life.exit_code);
    }
    if (life.code.empty() == (life.outcome == LifeOutcome::kRefused)) {
      return life_text(i) + " has the outcome '" + name_of(life.outcome) + "', " +
             (life.code.empty() ? "without a code" : "with the code " + life.code);
    }
    if (life.first_step < 0 || life.first_step > life.last_step) {
      return life_text(i) + " began at step " + std::to_string(life.first_step) +
             " and ended at step " + std::to_string(life.last_step);
    }
    if (ranks_of_layout(life.layout).value_or(0) > result.world) {
      return life_text(i) + " had the layout '" + life.layout +
             "', of more ranks than the world of " + std::to_string(result.world);
    }
  }
  if (layouts != result.layouts) {
    return "its layouts are '" + join(result.layouts, "', '") + "', and those of its lives are '" +
           join(layouts, "', '") + "'";
  }
  return "";
}

std::string in_generations(const ScenarioResult& result) {
  const auto& lives = result.incarnations;
  for (const auto& generation : result.generations) {
    const std::string what = "the checkpoint of step " + std::to_string(generation.step);
    if (generation.life >= lives.size()) {
      return what + " was saved by life " + std::to_string(generation.life) + " of " +
             std::to_string(lives.size());
    }
    const Incarnation& saver = lives[generation.life];
    const bool within = generation.step >= saver.first_step && generation.step <= saver.last_step;
    if (!within && generation.state != "unfinished") {
      return what + " was saved by life " + std::to_string(generation.life) +
             ", which had the steps from " + std::to_string(saver.first_step) + " to " +
             std::to_string(saver.last_step);
    }
    for (const auto* later : {&generation.loaded_by, &generation.skipped_by}) {
      for (std::size_t i = 0; i < later->size(); ++i) {
        const std::size_t life = (*later)[i];
        const bool again = i > 0 && (*later)[i - 1] >= life;
        if (life >= generation.life && life < lives.size() && !again) continue;
        return what + " of life " + std::to_string(generation.life) +
               " was loaded or passed over by life " + std::to_string(life) + " of " +
               std::to_string(lives.size());
      }
    }
  }
  return "";
}

/// Finds a step that a rank of the last life loaded although no generation says so. Lanes of other
/// programs list none.
std::string in_loads(const ScenarioResult& result) {
  if (result.generations.empty()) return "";
  for (const auto& rank : result.ranks) {
    if (rank.loaded_step == -1) continue;
    const bool listed = std::ranges::any_of(result.generations, [&](const Generation& one) {
      return one.step == rank.loaded_step &&
             std::ranges::find(one.loaded_by, result.incarnations.size() - 1) !=
                 one.loaded_by.end();
    });
    if (!listed) {
      return "rank " + std::to_string(rank.rank) + " loaded step " +
             std::to_string(rank.loaded_step) +
             ", and no checkpoint of that step was loaded by the last life";
    }
  }
  return "";
}

/// Finds a step that a life trained although the course lacks it.
std::string in_trajectory(const ScenarioResult& result) {
  std::multiset<std::int64_t> steps;
  for (const auto& point : result.trajectory) steps.insert(point.step);
  for (std::size_t i = 0; i < result.incarnations.size(); ++i) {
    const Incarnation& life = result.incarnations[i];
    if (life.layout == kCommand) continue;
    // More steps than there are points can't all be among them, however far the life says it went.
    for (std::int64_t step = life.first_step + 1; step <= life.last_step; ++step) {
      const auto at = steps.find(step);
      if (at == steps.end()) {
        return life_text(i) + " had step " + std::to_string(step) + ", which its course lacks";
      }
      steps.erase(at);
    }
  }
  return "";
}

std::string in_faults(const ScenarioResult& result) {
  for (const auto& fault : result.faults) {
    if (fault.rank < 0 || fault.rank >= result.world) {
      return "a fault '" + fault.kind + "' was planned on rank " + std::to_string(fault.rank) +
             " of a world of " + std::to_string(result.world);
    }
    if (fault.fired <= fault.reached && fault.reached <= fault.armed) continue;
    return "a fault '" + fault.kind + "' on rank " + std::to_string(fault.rank) +
           (fault.fired ? " fired without being reached" : " was reached without being armed");
  }
  return "";
}

std::string in_times(const ScenarioResult& result, double seconds) {
  if (std::isfinite(result.seconds) && result.seconds >= 0 && result.seconds <= seconds) return "";
  std::ostringstream text;
  text << "it took " << result.seconds << " s, and the whole run " << seconds << " s";
  return text.str();
}

}  // namespace

std::string contradiction_in(const ScenarioResult& result, double seconds) {
  for (const auto& found : {in_lives(result), in_times(result, seconds), in_generations(result),
                            in_loads(result), in_trajectory(result), in_faults(result)}) {
    if (!found.empty()) return found;
  }
  const auto ranks = static_cast<std::int64_t>(result.ranks.size());
  const std::string& layout = result.incarnations.back().layout;
  if (ranks <= result.world && ranks >= ranks_of_layout(layout).value_or(0)) return "";
  return "it has " + counted(result.ranks.size(), "rank") + " of the layout '" + layout +
         "' in a world of " + std::to_string(result.world);
}

}  // namespace reprise::reports
