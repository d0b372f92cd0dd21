#pragma once
// What all ranks of a job say together at one moment: tensors merged over ranks.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/witness/witness.hpp"

namespace reprise::driver {

struct WitnessFinding {
  RulingCode code = Code::kInternal;
  std::string text;
  std::optional<std::int64_t> rank = {};
  std::string key = {};                    ///< tensor whose elements would say more
  std::optional<std::int64_t> saved = {};  ///< step of the save that it was compared with
  std::optional<std::int64_t> step = {};   ///< step of the moment with the wrong value
  std::optional<StateMoment> when = {};    ///< nothing: the stored tensor is wrong
  std::size_t life = 0;
  bool inconclusive = false;
};
using WitnessFindings = std::vector<WitnessFinding>;

struct WholeTensor {
  DType dtype = DType::kFloat32;
  Dims shape;
  std::uint64_t digest = 0;
  std::uint64_t elements = 0;  ///< over all ranks, replicas included
  std::int64_t rank = 0;       ///< lowest rank that told of it
};

struct WholeState {
  StateMoment when = StateMoment::kSave;
  std::int64_t step = 0;
  std::size_t life = 0;
  std::map<std::string, WholeTensor> tensors;
  /// Digests by key and shard; nothing: not judged.
  std::map<std::pair<std::string, std::string>, std::optional<std::uint64_t>> objects;
};

/// Merges the n-th state of that kind over all ranks. Finds replicas that differ, boxes that leave
/// a gap or overlap, and ranks that disagree on a tensor. Nothing if some rank has no such state.
std::optional<WholeState> merge_states(const std::vector<RankWitness>& ranks, StateMoment when,
                                       std::size_t nth, std::size_t life,
                                       WitnessFindings& findings);

/// Merges all states of that kind that every rank told.
std::vector<WholeState> states_of(const std::vector<RankWitness>& ranks, StateMoment when,
                                  std::size_t life, WitnessFindings& findings);

}  // namespace reprise::driver
