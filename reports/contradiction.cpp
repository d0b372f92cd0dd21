#include "reports/contradiction.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
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
/// Greater exit codes stand for signals.
constexpr int kExitMax = 127;
constexpr int kCodeMax = 255;

std::string life_text(std::size_t life) { return "life " + std::to_string(life); }

/// Returns the exit codes with which a life of a scenario that passed can have that outcome: 16 and
/// 17 are a job's own, and so is 1 of a job that stops because of a wrong result.
std::span<const int> exit_codes_of(LifeOutcome outcome) {
  static constexpr int kRan[] = {0, 16, 17};
  static constexpr int kLoaded[] = {0, 1, 16, 17};
  static constexpr int kError[] = {1};
  switch (outcome) {
    case LifeOutcome::kRan:
      return kRan;
    case LifeOutcome::kContinued:
    case LifeOutcome::kFellBack:
      return kLoaded;
    case LifeOutcome::kRefused:
    case LifeOutcome::kCutShort:
      return kError;
    case LifeOutcome::kFailed:
      break;
  }
  return {};
}

bool can_end_with(const Life& life, ReportLane lane) {
  // A launcher tells a kill of one of its ranks by a code of its own.
  if (lane == ReportLane::kWatch && life.outcome == LifeOutcome::kCutShort) {
    return life.exit_code > 0 && life.exit_code <= kCodeMax;
  }
  const bool chooses = runs_programs(lane) && life.outcome != LifeOutcome::kCutShort &&
                       life.outcome != LifeOutcome::kFailed;
  if (chooses) return life.exit_code >= 0 && life.exit_code <= kExitMax;
  const auto codes = exit_codes_of(life.outcome);
  return std::ranges::find(codes, life.exit_code) != codes.end();
}

/// Returns the least number of ranks that a layout needs, such as "tp2 ep2 dp3 order tp-dp" or
/// "a: tp2 on 0 1, b: dp2 on 2 3"; at most 2^31.
std::int64_t ranks_of_layout(const std::string& layout) {
  constexpr std::int64_t kRanksMax = std::int64_t{1} << 31;
  std::int64_t product = 1;
  std::int64_t listed = 0;
  bool lists = false;  // the ranks of a module are listed after "on"
  std::istringstream words(layout);
  for (std::string word; words >> word;) {
    if (word == "on" || word.ends_with(':')) {
      lists = word == "on";
      continue;
    }
    const auto digits = std::min(word.find_first_of("0123456789"), word.size());
    const std::string axis = word.substr(0, digits);
    std::int64_t number = 0;
    std::from_chars(word.data() + digits, word.data() + word.size(), number);
    number = std::clamp<std::int64_t>(number, 0, kRanksMax - 1);
    if (lists && axis.empty()) {
      listed = std::max(listed, number + 1);
    } else if (axis == "tp" || axis == "cp" || axis == "dp" || axis == "pp") {
      product = std::min(product * std::max<std::int64_t>(number, 1), kRanksMax);
    }
  }
  return listed > 0 ? listed : product;
}

std::string in_life(const ScenarioResult& result, std::size_t number, ReportLane lane) {
  const Life& life = result.lives[number];
  const std::string ended =
      life_text(number) + " has the outcome '" + name_of(life.outcome) + "', ";
  if (!can_end_with(life, lane)) {
    return ended + "with the exit code " + std::to_string(life.exit_code);
  }
  if (life.code.empty() == (life.outcome == LifeOutcome::kRefused)) {
    return ended + (life.code.empty() ? "without a code" : "with the code " + life.code);
  }
  if (life.first_step < 0 || life.first_step > life.last_step) {
    return life_text(number) + " began at step " + std::to_string(life.first_step) +
           " and ended at step " + std::to_string(life.last_step);
  }
  const bool tells_world = !runs_programs(lane);  // it is that of the life compared
  if (tells_world && ranks_of_layout(life.layout) > result.world) {
    return life_text(number) + " had the layout '" + life.layout +
           "', which has more ranks than the world of " + std::to_string(result.world);
  }
  return "";
}

std::string in_lives(const ScenarioResult& result, ReportLane lane) {
  if (result.lives.empty()) return "it has no life";
  std::vector<std::string> layouts;
  for (std::size_t i = 0; i < result.lives.size(); ++i) {
    std::string found = in_life(result, i, lane);
    if (!found.empty()) return found;
    layouts.push_back(result.lives[i].layout);
  }
  if (layouts == result.layouts) return "";
  return "its layouts are '" + join(result.layouts, "', '") + "', but those of its lives are '" +
         join(layouts, "', '") + "'";
}

/// Holds the ranks against the world and the last layout. Of a program's lives, the one that was
/// compared need not be the last.
std::string in_ranks(const ScenarioResult& result, ReportLane lane) {
  const auto ranks = static_cast<std::int64_t>(result.ranks.size());
  const std::string& layout = result.lives.back().layout;
  const std::int64_t least = runs_programs(lane) ? 0 : ranks_of_layout(layout);
  if (ranks <= result.world && ranks >= least) return "";
  return "it has " + counted(result.ranks.size(), "rank") + " of the layout '" + layout +
         "' in a world of " + std::to_string(result.world);
}

std::string in_generation(const ScenarioResult& result, const Generation& generation) {
  const auto& lives = result.lives;
  const std::string what = "the checkpoint of step " + std::to_string(generation.step) +
                           " of life " + std::to_string(generation.life);
  if (generation.life >= lives.size()) {
    return what + ", of which there are " + std::to_string(lives.size());
  }
  const Life& saver = lives[generation.life];
  const bool within = generation.step >= saver.first_step && generation.step <= saver.last_step;
  if (!within && generation.state != "unfinished") {
    return what + " does not belong to a step from " + std::to_string(saver.first_step) + " to " +
           std::to_string(saver.last_step);
  }
  for (const auto* later : {&generation.loaded_by, &generation.skipped_by}) {
    for (std::size_t i = 0; i < later->size(); ++i) {
      const std::size_t life = (*later)[i];
      const bool again = i > 0 && (*later)[i - 1] >= life;
      if (life >= generation.life && life < lives.size() && !again) continue;
      return what + " was loaded or passed over by life " + std::to_string(life) + " of " +
             std::to_string(lives.size());
    }
  }
  return "";
}

std::string in_generations(const ScenarioResult& result) {
  for (const auto& generation : result.generations) {
    std::string found = in_generation(result, generation);
    if (!found.empty()) return found;
  }
  return "";
}

/// Finds a step that a rank of the last life loaded although no generation says so, or the other
/// way round. Programs of others list no generations, and nobody notes what a command loads.
std::string in_loads(const ScenarioResult& result) {
  if (result.generations.empty() || result.lives.back().layout == kCommand) return "";
  std::set<std::int64_t> loaded;
  for (const auto& generation : result.generations) {
    const bool by_last = std::ranges::find(generation.loaded_by, result.lives.size() - 1) !=
                         generation.loaded_by.end();
    if (by_last) loaded.insert(generation.step);
  }
  bool some = false;
  for (const auto& rank : result.ranks) {
    if (rank.loaded_step == -1) continue;
    some = true;
    if (loaded.contains(rank.loaded_step)) continue;
    return "rank " + std::to_string(rank.rank) + " loaded step " +
           std::to_string(rank.loaded_step) +
           ", but the last life loaded no checkpoint of that step";
  }
  if (some || loaded.empty()) return "";
  return "the last life loaded the checkpoint of step " + std::to_string(*loaded.begin()) +
         ", but no rank did";
}

/// Finds a step that a life trained although the course lacks it. A command that is watched as it
/// is may have steps whose loss nobody sees.
std::string in_trajectory(const ScenarioResult& result, ReportLane lane) {
  if (lane == ReportLane::kWatch) return "";
  std::multiset<std::int64_t> steps;
  for (const auto& point : result.trajectory) steps.insert(point.step);
  for (std::size_t i = 0; i < result.lives.size(); ++i) {
    const Life& life = result.lives[i];
    if (life.layout == kCommand) continue;
    // Ends where there are no more points, however far the life says that it went.
    for (std::int64_t step = life.first_step; step < life.last_step;) {
      const auto at = steps.find(++step);
      if (at == steps.end()) {
        return life_text(i) + " had step " + std::to_string(step) + ", which its trajectory lacks";
      }
      steps.erase(at);
    }
  }
  return "";
}

std::string in_faults(const ScenarioResult& result, ReportLane lane) {
  for (const auto& fault : result.faults) {
    const bool outside = fault.rank < 0 || fault.rank >= result.world;
    if (outside && !runs_programs(lane)) {
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
  text << "it took " << result.seconds << " s, but the whole run took " << seconds << " s";
  return text.str();
}

}  // namespace

std::string contradiction_in(const ScenarioResult& result, ReportLane lane, double seconds) {
  std::string lives = in_lives(result, lane);
  if (!lives.empty()) return lives;
  if (result.failure) return "it has a failure: " + result.failure->cause;
  for (const auto& found :
       {in_ranks(result, lane), in_times(result, seconds), in_generations(result), in_loads(result),
        in_trajectory(result, lane), in_faults(result, lane)}) {
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace reprise::reports
