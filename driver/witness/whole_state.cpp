#include "driver/witness/whole_state.hpp"

#include <algorithm>
#include <sstream>

#include "core/base/hash.hpp"
#include "core/geometry/tiling.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

/// One tensor, combined from the reports of all ranks.
struct Told {
  WholeTensor whole;
  std::int64_t holders = 0;  ///< number of copies of each box; 0 until a rank reports it
  std::map<Box, std::vector<std::pair<std::int64_t, std::uint64_t>>>
      boxes;  ///< maps each box to the rank and digest of every copy
};

std::string moment_text(const WholeState& state) {
  return life_name(state.life) + ", state at " + std::string(name_of(state.when)) + ", step " +
         std::to_string(state.step);
}

const WitnessState* nth_state(const RankWitness& rank, StateMoment when, std::size_t nth) {
  for (const auto& state : rank.states) {
    if (state.when == when && nth-- == 0) return &state;
  }
  return nullptr;
}

std::string_view phase_of(StateMoment when) {
  return when == StateMoment::kSave ? "save" : when == StateMoment::kLoaded ? "load" : "end";
}

class Merge : judged::Finder {
 public:
  Merge(WholeState& state, Findings& findings)
      : Finder(findings, {.text = moment_text(state) + ": ",
                          .life = state.life,
                          .step = state.step,
                          .phase = std::string(phase_of(state.when))}),
        state_(state) {}

  void add(const RankWitness& rank, const WitnessState& told) {
    if (told.step != state_.step) {
      find(judged::kVerdictDisagreement, "",
           "rank " + std::to_string(rank.rank) + " is at step " + std::to_string(told.step),
           rank.rank);
    }
    for (const auto& tensor : told.tensors) add(rank.rank, tensor);
    for (const auto& object : told.objects) add(rank.rank, object);
  }

  void finish() {
    for (auto& [key, told] : tensors_) {
      require_replicas(key, told);
      require_tiling(key, told);
      for (const auto& [box, held] : told.boxes) {
        told.whole.digest += held.front().second;
        told.whole.elements += static_cast<std::uint64_t>(box.elements()) * held.size();
      }
      state_.tensors[key] = told.whole;
    }
  }

 private:
  Finding& find(FindingCode code, const std::string& key, const std::string& what,
                std::int64_t rank, SourceLine line = SourceLine::here()) {
    Finding& finding = Finder::find(code, key, (key.empty() ? "" : key + " ") + what, line);
    finding.rank = rank_numbered(rank);
    return finding;
  }

  void add(std::int64_t rank, const WitnessTensor& tensor) {
    auto [at, added] = tensors_.try_emplace(tensor.key);
    Told& told = at->second;
    if (added) {
      told.whole = {tensor.dtype, tensor.shape, 0, 0, rank, tensor.blank, tensor.per_rank};
    }
    if (!tensor.boxes.empty() && told.holders == 0) told.holders = tensor.holders;
    const bool same = told.whole.dtype == tensor.dtype && told.whole.shape == tensor.shape;
    if (!same) {
      const FindingCode code =
          told.whole.dtype == tensor.dtype ? Code::kShapeDrift : Code::kDtypeDrift;
      find(code, tensor.key,
           "has a different shape or dtype than on rank " + std::to_string(told.whole.rank), rank);
      return;
    }
    if (told.whole.blank != tensor.blank) {
      find(judged::kKeysetAsymmetry, tensor.key,
           "leaves different boxes blank than on rank " + std::to_string(told.whole.rank), rank);
    }
    if (!tensor.boxes.empty() && told.holders != tensor.holders) {
      find(judged::kKeysetAsymmetry, tensor.key,
           "has " + std::to_string(tensor.holders) + " holders, but " +
               std::to_string(told.holders) + " according to another rank",
           rank);
    }
    for (const auto& box : tensor.boxes) told.boxes[box.box].emplace_back(rank, box.digest);
  }

  void add(std::int64_t rank, const WitnessObject& object) {
    const WholeObject whole{object.digest, object.stored, object.per_rank, object.value, {}};
    const auto [at, added] = state_.objects.try_emplace({object.key, object.shard}, whole);
    at->second.ranks.push_back(rank);
    if (added || (at->second.digest == object.digest && at->second.stored == object.stored)) return;
    find(Code::kCommonStateDiverges, object.key, "differs from that of another rank", rank);
  }

  /// Checks that all copies of a box are equal. They have to be, because a save keeps only one
  /// copy.
  void require_replicas(const std::string& key, const Told& told) {
    const FindingCode code =
        state_.when == StateMoment::kSave ? judged::kFalseReplica : judged::kReplicaMismatch;
    for (const auto& [box, held] : told.boxes) {
      for (const auto& [rank, digest] : held) {
        if (digest == held.front().second) continue;
        find(code, key + to_string(box),
             "has the digest " + hex(digest) + ", and " + hex(held.front().second) + " on rank " +
                 std::to_string(held.front().first),
             rank);
        break;
      }
      if (static_cast<std::int64_t>(held.size()) == told.holders) continue;
      find(judged::kKeysetAsymmetry, key + to_string(box),
           "is held by " + std::to_string(held.size()) + " ranks, but " +
               std::to_string(told.holders) + " should hold it",
           held.front().first);
    }
  }

  void require_tiling(const std::string& key, const Told& told) {
    const Box whole = Box::whole(told.whole.shape);
    if (whole.empty()) return;
    if (told.boxes.empty()) {
      find(Code::kCoverageGap, key, "has no part on any rank", told.whole.rank);
      return;
    }
    std::vector<Box> boxes = told.whole.blank;
    for (const auto& [box, held] : told.boxes) boxes.push_back(box);
    const auto fault = tiling_fault(whole, boxes);
    if (!fault) return;
    if (fault->gap) {
      find(Code::kCoverageGap, key, "has no rank for " + to_string(*fault->gap), told.whole.rank);
      return;
    }
    find(Code::kChunkOverlap, key,
         "is held in boxes that overlap but are not equal: " +
             to_string(boxes[fault->overlap->first]) + " and " +
             to_string(boxes[fault->overlap->second]),
         told.whole.rank)
        .severity = Severity::kInconclusive;
  }

  WholeState& state_;
  std::map<std::string, Told> tensors_;
};

}  // namespace

std::string shown_content(const WholeObject& object) {
  if (!object.value.empty()) return object.value;
  return object.digest ? "digest " + hex(*object.digest) : "";
}

std::optional<std::int64_t> rank_that_lost(const WholeObject& before, const WholeObject& after) {
  for (const auto rank : before.ranks) {
    if (!std::binary_search(after.ranks.begin(), after.ranks.end(), rank)) return rank;
  }
  return std::nullopt;
}

std::optional<WholeState> merge_states(const std::vector<RankWitness>& ranks, StateMoment when,
                                       std::size_t nth, std::size_t life, Findings& findings) {
  WholeState state{.when = when, .life = life};
  std::vector<const WitnessState*> told;
  for (const auto& rank : ranks) {
    told.push_back(nth_state(rank, when, nth));
    if (told.back() == nullptr) return std::nullopt;
  }
  if (told.empty()) return std::nullopt;
  state.step = told.front()->step;
  Merge merge(state, findings);
  for (std::size_t i = 0; i < ranks.size(); ++i) merge.add(ranks[i], *told[i]);
  merge.finish();
  return state;
}

std::vector<StateMoment> moments_of(const std::vector<RankWitness>& ranks) {
  std::vector<StateMoment> moments;
  if (ranks.empty()) return moments;
  for (const auto& state : ranks.front().states) moments.push_back(state.when);
  return moments;
}

void add_blanks(const std::vector<RankWitness>& ranks, Blanks& blanks) {
  for (const auto& rank : ranks) {
    for (const auto& state : rank.states) {
      for (const auto& tensor : state.tensors) {
        if (!tensor.blank.empty()) blanks[tensor.key] = tensor.blank;
      }
    }
  }
}

std::vector<WholeState> states_of(const std::vector<RankWitness>& ranks, StateMoment when,
                                  std::size_t life, Findings& findings) {
  std::vector<WholeState> states;
  while (auto state = merge_states(ranks, when, states.size(), life, findings)) {
    states.push_back(std::move(*state));
  }
  return states;
}

}  // namespace reprise::driver
