#pragma once
// What a scenario has come to at some point, as its actions tell it and without having seen any
// run: which saves there are, and how far the random streams have moved. A load that takes another
// checkpoint than it should is seen by this.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/ids.hpp"
#include "scenarios/driver/scenario.hpp"
#include "sim/faults/fault.hpp"

namespace reprise::driver {

/// Steps that random streams have drawn since they last began anew. Host streams come back from a
/// checkpoint where tp and pp are as when it was saved, expert streams where pp, ep and etp are;
/// else they begin anew.
struct StreamAges {
  std::int64_t host = 0;
  std::int64_t expert = 0;

  friend bool operator==(const StreamAges&, const StreamAges&) = default;
};

struct SavePoint {
  Step step;
  std::size_t incarnation = 0;  ///< that saved it
  sim::Layout layout;
  std::optional<std::int64_t> parent_step;  ///< of the checkpoint that the saving job came from
  StreamAges ages;
  bool certain = true;   ///< false: it did not come to its end, and may be there all the same
  bool damaged = false;  ///< since then, or by a store that lied
  bool random = true;    ///< it holds the random streams

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
struct Position {
  std::size_t incarnation = 0;
  sim::Layout layout;
  Step step;
  std::optional<std::int64_t> parent_step;
  StreamAges ages;

  void train(std::int64_t steps);
  void skip();  ///< one iteration: streams stand still
  void load(const SavePoint& saved);
  SavePoint save(bool random = true) const;
};

/// The saves of all incarnations before that one, in order, of a scenario without faults.
std::vector<SavePoint> saves_before(const Scenario& scenario, std::size_t incarnation);

/// The latest of that step; nothing if there is none.
const SavePoint* save_of(const std::vector<SavePoint>& saves, Step step);

/// Those of which the checkpoint of that step may be, newest first: a save that did not come to its
/// end may have left what was there before.
std::vector<const SavePoint*> saves_that_may_stand(const std::vector<SavePoint>& saves, Step step);

}  // namespace reprise::driver
