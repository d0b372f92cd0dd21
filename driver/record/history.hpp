#pragma once
// Follows the actions of a scenario, without looking at any run. Computes which saves exist at a
// given time, and how many steps the random streams have advanced. From this, the judges recognize
// a load of the wrong checkpoint.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "driver/language/scenario.hpp"
#include "reprise/types.hpp"
#include "sim/faults/fault.hpp"

namespace reprise::driver {

/// Number of steps that a module's random streams have advanced since they last started. Streams
/// start again if a load can't restore them. A load restores host streams if tp and pp are
/// unchanged. If streams differ between ranks of dp x cp, the product dp x cp must also be
/// unchanged. A load restores expert streams if pp, ep and etp are unchanged.
struct StreamAges {
  std::int64_t host = 0;
  std::int64_t expert = 0;

  friend bool operator==(const StreamAges&, const StreamAges&) = default;
};

/// Stream ages, keyed by module name. A job that is one model has one entry, with an empty name.
using Ages = std::map<std::string, StreamAges>;

/// A load after which the job continues differently, because the load left something out or modules
/// were added or dropped. The uninterrupted job must make the same change.
struct Turn {
  Step at;                ///< step of the loaded checkpoint
  std::size_t life = 0;   ///< life that loaded it
  bool optimizer = true;  ///< true if the checkpoint contained the optimizer
  bool release = false;

  friend bool operator==(const Turn&, const Turn&) = default;
};

struct SavePoint {
  Step step;
  std::size_t life = 0;  ///< life that made the save
  std::vector<sim::ModuleConfig> modules = {};
  /// Step of the checkpoint that the saving job had loaded; empty if it had loaded none.
  std::optional<std::int64_t> parent_step = {};
  Ages ages = {};
  bool certain = true;      ///< false if the save did not finish; its checkpoint may exist anyway
  bool damaged = false;     ///< true if its checkpoint was damaged, on purpose or by a faulty store
  bool random = true;       ///< true if the save includes the random streams
  bool optimizer = true;    ///< true if it includes the optimizers' state
  bool release = false;     ///< true if it was renamed to a release
  std::int64_t beside = 0;  ///< steps trained while this save was in flight
  std::vector<Turn> turns = {};  ///< changes that loads made to the saving job, in order

  friend bool operator==(const SavePoint&, const SavePoint&) = default;
};

/// What the next life must know about the lives before it.
struct Past {
  std::vector<SavePoint> saves;        ///< all saves, in order
  std::vector<sim::FaultSpec> faults;  ///< faults that stay active in later lives
  bool tracker_damaged = false;        ///< true while the tracker is damaged
};

/// Returns the index of the newest certain save, or -1.
std::ptrdiff_t newest_certain(const std::vector<SavePoint>& saves);

/// Returns the outcome of a load of step `loaded`: kContinued if the last save of that step is the
/// newest certain save or was made after it, otherwise kFellBack. Returns nothing if that step was
/// never saved.
std::optional<Outcome> outcome_of(const std::vector<SavePoint>& saves, Step loaded);

/// The state that a running job must have reached, computed from the scenario's actions.
class Position {
 public:
  Position(const Scenario& scenario, std::size_t life);

  Step step;
  std::optional<std::int64_t> parent_step;
  Ages ages;
  std::vector<Turn> turns;

  const std::vector<sim::ModuleConfig>& modules() const { return modules_; }
  std::size_t life() const { return life_; }
  void train(std::int64_t steps);
  void skip();  ///< advances by an iteration that leaves the streams unchanged
  void load(const SavePoint& saved);
  SavePoint save(const SaveAction& action = {}) const;

 private:
  std::size_t life_;
  std::vector<sim::ModuleConfig> modules_;
  sim::LoadChoice choice_;
  bool random_by_dp_;
};

/// Returns the modules of the job in this life, with their ranks.
std::vector<sim::ModuleConfig> modules_of(const Scenario& scenario, std::size_t life);

/// Returns the saves of all earlier lives, in order, for a scenario without faults.
std::vector<SavePoint> saves_before(const Scenario& scenario, std::size_t life);

/// Returns the latest save of step `step`; null if there is none.
const SavePoint* save_of(const std::vector<SavePoint>& saves, Step step);

/// Returns the saves that may have written the checkpoint of that step, newest first. There may be
/// several, because a save that did not finish may have left the earlier checkpoint in place.
std::vector<const SavePoint*> saves_that_may_stand(const std::vector<SavePoint>& saves, Step step);

}  // namespace reprise::driver
