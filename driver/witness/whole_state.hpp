#pragma once
// Merges the tensors and objects that all ranks of a job reported at one moment.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/witness/stored_root.hpp"
#include "driver/witness/witness.hpp"
#include "properties/ruling_watch.hpp"

namespace reprise::driver {

struct WitnessFinding {
  RulingCode code = Code::kInternal;
  std::string text;
  std::optional<std::int64_t> rank = {};
  std::string key = {};                    ///< tensor or object with a wrong content
  std::optional<std::int64_t> saved = {};  ///< step of the save that the value was compared with
  std::optional<std::int64_t> step = {};   ///< step at which the value was wrong
  std::optional<StateMoment> when = {};    ///< when the value was wrong; empty for a stored tensor
  std::size_t life = 0;
  bool inconclusive = false;
  std::string phase = {};     ///< start, load, train, save, end or store; empty if unknown
  std::string expected = {};  ///< the right value, if it is known
  std::string found = {};     ///< the wrong value, if it is known
  /// What is compared with another run of the same steps: a metric, "samples" or "end". Empty if
  /// the finding is about this run alone.
  std::string stream = {};
  /// True if both runs had neither saved nor loaded before the two began to differ. Then the cause
  /// is neither a save nor a load.
  bool untouched = false;
  /// True if a process was ended at its deadline. On a slow machine another try may show more.
  bool at_deadline = false;
  SourceLine line = SourceLine::here();  ///< where a judge made it
};

/// Holds what judges found. A finding comes into it only past may_state().
class WitnessFindings {
 public:
  /// Returns the finding, for what is known only afterwards.
  WitnessFinding& push_back(WitnessFinding finding);
  void append(const WitnessFindings& others);

  auto begin() { return found_.begin(); }
  auto end() { return found_.end(); }
  auto begin() const { return found_.begin(); }
  auto end() const { return found_.end(); }
  bool empty() const { return found_.empty(); }
  std::size_t size() const { return found_.size(); }
  const WitnessFinding& front() const { return found_.front(); }
  const WitnessFinding& operator[](std::size_t i) const { return found_[i]; }
  const WitnessFinding& at(std::size_t i) const { return found_.at(i); }

 private:
  std::vector<WitnessFinding> found_;
  WitnessFinding silenced_;  ///< the last one that was not to be stated
};

/// Values of what is lost, in findings.
inline constexpr const char* kNotStored = "not stored";
inline constexpr const char* kHeldByNone = "held by no rank";
/// Returns the name of a life in messages: "life 1".
inline std::string life_name(std::size_t life) { return "life " + std::to_string(life); }

struct WholeTensor {
  DType dtype = DType::kFloat32;
  Dims shape;
  std::uint64_t digest = 0;
  std::uint64_t elements = 0;   ///< number of elements over all ranks, replicas included
  std::int64_t rank = 0;        ///< lowest rank that reported the tensor
  std::vector<Box> blank = {};  ///< boxes that belong to no rank
  bool per_rank = false;        ///< true if another layout may lack this tensor
};

struct WholeObject {
  std::optional<std::uint64_t> digest;  ///< if empty, only the object's presence is judged
  bool stored = true;      ///< false if the checkpoint has no separate key for this object
  bool per_rank = false;   ///< true if another layout may lack this object
  std::string value = {};  ///< its content in words, if it is short
  std::vector<std::int64_t> ranks = {};  ///< ranks that hold it, in ascending order
};
/// Returns the first rank that holds the object in one state and not in another; nothing if there
/// is none.
std::optional<std::int64_t> rank_that_lost(const WholeObject& before, const WholeObject& after);
/// Returns the content of an object in words: its value or, if that is not known, its digest.
std::string shown_content(const WholeObject& object);

struct WholeState {
  StateMoment when = StateMoment::kSave;
  std::int64_t step = 0;
  std::size_t life = 0;
  std::map<std::string, WholeTensor> tensors;
  std::map<std::pair<std::string, std::string>, WholeObject> objects;  ///< by key and shard
};

/// From each rank, takes the `nth` state that it reported for the moment `when`, and merges these
/// states. Reports replicas that differ, boxes that leave a gap or overlap, and ranks that disagree
/// on a tensor. Returns nothing if some rank has no such state.
std::optional<WholeState> merge_states(const std::vector<RankWitness>& ranks, StateMoment when,
                                       std::size_t nth, std::size_t life,
                                       WitnessFindings& findings);

/// Adds to `blanks` the boxes that the ranks reported as blank.
void add_blanks(const std::vector<RankWitness>& ranks, Blanks& blanks);

/// Returns the moments of the first rank's states, in the order in which it reported them.
std::vector<StateMoment> moments_of(const std::vector<RankWitness>& ranks);

/// Calls merge_states() for the moment `when` with nth = 0, 1, 2 and so on, until some rank has no
/// such state. Returns all results.
std::vector<WholeState> states_of(const std::vector<RankWitness>& ranks, StateMoment when,
                                  std::size_t life, WitnessFindings& findings);

}  // namespace reprise::driver
