#pragma once
// One timeline: the scenario of a recipe, its run, and what was seen in it.
//
//   life 0    train, save                      at most one fault in each life: in a save, in the
//   life 1    load, train, save, fault, save   load, in the store, or damage after the life
//   ...
//   life 5    load, train 1                    compared with the uninterrupted job

#include <cstdint>
#include <string>
#include <vector>

#include "driver/explore/recipe.hpp"
#include "driver/lanes/lane.hpp"
#include "driver/language/scenario.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

/// Number of lives of every timeline.
inline constexpr std::size_t kTimelineLives = 6;

/// Returns the scenario of a timeline. Life n depends only on the recipe's seed_of_life(n) and on
/// the plans of the lives before it; the job depends only on the recipe's seed.
Scenario scenario_of(const Recipe& recipe);

/// Returns the subjects that a search may be limited to: the models of the jobs; `damage`, jobs
/// whose store may lie and whose checkpoints may be damaged; `rerun`, jobs in which a device
/// computes wrong results.
std::vector<std::string> timeline_subjects();
/// True if the job of the timelines with this seed has the subject.
bool is_about(std::uint64_t seed, const std::string& subject);

/// A mark or a tuple that was seen in a life.
struct Sighting {
  std::string name;
  std::size_t life = 0;

  friend bool operator==(const Sighting&, const Sighting&) = default;
};

/// Size of a life on the simulated lane.
struct LifeSize {
  std::uint64_t decisions = 0;
  std::uint64_t fibers = 0;
};

/// The result of a timeline: what it reached, and the verdict on it.
struct TimelineResult {
  std::vector<Sighting> marks = {};   ///< see marks.hpp; by life, each once in a life
  std::vector<Sighting> tuples = {};  ///< phase and step, fault, how the life ended and went on
  std::vector<LifeSize> lives = {};
  bool unasked = false;  ///< true if a mutant was active but its functions were never called
  reports::Verdict verdict = reports::Verdict::kPass;
  std::string code = {};
  std::string reason = {};
};

/// Runs a timeline on the simulated lane. `mutant` is empty or the name of a defect to switch on.
TimelineResult run_timeline(const Recipe& recipe, const std::string& mutant);

/// Returns the options with which run_timeline() runs the scenario.
LaneOptions options_of(const Recipe& recipe, const std::string& mutant);

}  // namespace reprise::driver
