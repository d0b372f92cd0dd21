#pragma once
// What a scenario has come to at some point, as its actions tell it and without having seen any
// run: which saves there are, and how far the random streams have moved. A load that takes another
// checkpoint than it should is seen by this.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "reprise/types.hpp"
#include "scenarios/driver/scenario.hpp"
#include "sim/faults/fault.hpp"

namespace reprise::driver {

/// Steps that a module's random streams have drawn since they last began anew. Host streams come
/// back from a checkpoint where tp and pp are as when it was saved (and, where they differ by rank
/// of dp x cp, that size), expert streams where pp, ep and etp are; else they begin anew.
struct StreamAges {
  std::int64_t host = 0;
  std::int64_t expert = 0;

  friend bool operator==(const StreamAges&, const StreamAges&) = default;
};

/// By module; of a job that is one model under the empty name.
using Ages = std::map<std::string, StreamAges>;

/// A load after which the job is not what it would be without it: something was left behind, or
/// modules came and went. The uninterrupted job has to do the same.
struct Turn {
  Step at;                      ///< of the checkpoint
  std::size_t incarnation = 0;  ///< that loaded it
  bool optimizer = true;        ///< the checkpoint held it
  bool release = false;

  friend bool operator==(const Turn&, const Turn&) = default;
};

struct SavePoint {
  Step step;
  std::size_t incarnation = 0;  ///< that saved it
  std::vector<sim::ModuleConfig> modules = {};
  std::optional<std::int64_t> parent_step =
      {};  ///< of the checkpoint that the saving job came from
  Ages ages = {};
  bool certain = true;      ///< false: it did not come to its end, and may be there all the same
  bool damaged = false;     ///< since then, or by a store that lied
  bool random = true;       ///< it holds the random streams
  bool optimizer = true;    ///< it holds the optimizers' state
  bool release = false;     ///< it was given the name of one
  std::int64_t beside = 0;  ///< steps that were trained while it was in flight
  std::vector<Turn> turns = {};  ///< of the job that saved it, in order

  friend bool operator==(const SavePoint&, const SavePoint&) = default;
};

/// What the lives before have come to, for the next one.
struct Past {
  std::vector<SavePoint> saves;        ///< in order
  std::vector<sim::FaultSpec> faults;  ///< that outlive a life
  bool tracker_damaged = false;        ///< and not written since
};

/// The newest save that is certain, or -1.
std::ptrdiff_t newest_certain(const std::vector<SavePoint>& saves);

/// How a life went on from the save of that step; nothing where none was made there, or it can't
/// be: Outcome::kContinued from the newest that is certain or a later one, else kFellBack.
std::optional<Outcome> outcome_of(const std::vector<SavePoint>& saves, Step loaded);

/// A running job.
class Position {
 public:
  Position(const Scenario& scenario, std::size_t incarnation);

  Step step;
  std::optional<std::int64_t> parent_step;
  Ages ages;
  std::vector<Turn> turns;

  const std::vector<sim::ModuleConfig>& modules() const { return modules_; }
  std::size_t incarnation() const { return incarnation_; }
  void train(std::int64_t steps);
  void skip();  ///< one iteration: streams stand still
  void load(const SavePoint& saved);
  SavePoint save(const SaveAction& action = {}) const;

 private:
  std::size_t incarnation_;
  std::vector<sim::ModuleConfig> modules_;
  sim::LoadChoice choice_;
  bool random_by_dp_;
};

/// Modules of that life's job, with their ranks.
std::vector<sim::ModuleConfig> modules_of(const Scenario& scenario, std::size_t incarnation);

/// The saves of all incarnations before that one, in order, of a scenario without faults.
std::vector<SavePoint> saves_before(const Scenario& scenario, std::size_t incarnation);

/// The latest of that step; nothing if there is none.
const SavePoint* save_of(const std::vector<SavePoint>& saves, Step step);

/// Those of which the checkpoint of that step may be, newest first: a save that did not come to its
/// end may have left what was there before.
std::vector<const SavePoint*> saves_that_may_stand(const std::vector<SavePoint>& saves, Step step);

}  // namespace reprise::driver
