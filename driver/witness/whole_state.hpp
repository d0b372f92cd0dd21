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

namespace reprise::driver {

/// Values of what is lost, in findings.
inline constexpr const char* kNotStored = "not stored";
inline constexpr const char* kHeldByNone = "held by no rank";
/// Returns a rank as witness files number it.
inline GlobalRank rank_numbered(std::int64_t rank) {
  return GlobalRank{static_cast<std::int32_t>(rank)};
}
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
                                       std::size_t nth, std::size_t life, Findings& findings);

/// Adds to `blanks` the boxes that the ranks reported as blank.
void add_blanks(const std::vector<RankWitness>& ranks, Blanks& blanks);

/// Returns the moments of the first rank's states, in the order in which it reported them.
std::vector<StateMoment> moments_of(const std::vector<RankWitness>& ranks);

/// Calls merge_states() for the moment `when` with nth = 0, 1, 2 and so on, until some rank has no
/// such state. Returns all results.
std::vector<WholeState> states_of(const std::vector<RankWitness>& ranks, StateMoment when,
                                  std::size_t life, Findings& findings);

}  // namespace reprise::driver
