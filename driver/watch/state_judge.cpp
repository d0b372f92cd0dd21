#include "driver/watch/state_judge.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "driver/watch/finding_book.hpp"
#include "driver/watch/name_groups.hpp"

namespace reprise::driver {
namespace {

/// How strictly names of a kind are judged.
enum class Judged : std::uint8_t {
  kStrictly,
  /// A plain value that is neither that of a new process nor of another step may be as it should
  /// be, such as the path from which a job resumes.
  kTensors,
  /// Random states: wrong only if they were saved or have an effect.
  kByEffect,
  /// Buffers: wrong unless they are right again at the end, without an effect. Before each forward,
  /// DistributedDataParallel gives every rank those of rank 0.
  kToTheEnd,
  /// Buffers that no state dict has: as other buffers, unless one has another size. That is a
  /// cache, which a model makes as large as it needs.
  kIfOfOneSize,
  /// Places in the data and fields of objects: told, but what they lead to decides.
  kNot,
};

Judged judged_as(const std::string& name) {
  static const std::map<std::string, Judged> kKinds = {{"param", Judged::kStrictly},
                                                       {"buffer", Judged::kToTheEnd},
                                                       {"buffer-not-saved", Judged::kIfOfOneSize},
                                                       {"optim", Judged::kStrictly},
                                                       {"group", Judged::kStrictly},
                                                       {"sched", Judged::kStrictly},
                                                       {"scaler", Judged::kStrictly},
                                                       {"rng", Judged::kByEffect},
                                                       {"attr", Judged::kNot},
                                                       {"sampler", Judged::kNot},
                                                       {"loader", Judged::kNot},
                                                       {"gen", Judged::kByEffect}};
  const auto at = kKinds.find(kind_of(name));
  return at == kKinds.end() ? Judged::kTensors : at->second;
}

bool judged_at_end(const std::string& name) {
  const Judged judged = judged_as(name);
  return judged != Judged::kTensors && judged != Judged::kByEffect && judged != Judged::kNot;
}

const std::string* value_of(const WatchedValues& values, const std::string& name) {
  const auto at = values.find(name);
  return at == values.end() ? nullptr : &at->second;
}

bool is_tensor(const std::string& value) { return elements_in(value).has_value(); }

/// Returns the part of a tensor's digest that says dtype and shape.
std::string form_of(const std::string& value) { return value.substr(0, value.rfind(':')); }

/// True if the name may well have another value, because it is a cache of another size.
bool is_other_cache(const std::string& name, const std::string& wanted, const std::string* found) {
  return judged_as(name) == Judged::kIfOfOneSize &&
         (found == nullptr || form_of(wanted) != form_of(*found));
}

/// One rank in the life A and in a later one.
struct RankPair {
  std::int32_t rank;
  const RankRecording& before;
  const RankRecording& after;
};

std::vector<RankPair> pairs_of(const LifeRecording& before, const LifeRecording& after) {
  std::vector<RankPair> pairs;
  for (const auto& [rank, recording] : after.ranks) {
    const auto at = before.ranks.find(rank);
    if (at != before.ranks.end()) {
      pairs.push_back({static_cast<std::int32_t>(rank), at->second, recording});
    }
  }
  return pairs;
}

/// Says what a wrong value is.
struct Wrong {
  FindingCode code = judged::kBitMismatch;
  std::string text;
  bool known = true;  ///< the value is that of a known other place
};

class Origin {
 public:
  Origin(const ResumedLife& lives, const RankPair& pair, std::int64_t step)
      : lives_(lives), pair_(pair), step_(step), start_(pair.before.held_at(0)) {}

  Wrong of(const std::string& name, const std::string* wanted, const std::string* found) const {
    const std::string* const fresh = start_ == nullptr ? nullptr : value_of(start_->names, name);
    if (found == nullptr) {
      const bool new_process = start_ != nullptr && fresh == nullptr;
      return {judged::kLostObject, new_process ? "as in a new process: not there" : "missing"};
    }
    if (fresh != nullptr && *fresh == *found) return {judged::kLostObject, "as in a new process"};
    for (const auto& state : pair_.before.held) {
      const std::string* const then = value_of(state.names, name);
      if (state.step == step_ || state.at_end || then == nullptr || *then != *found) continue;
      return {judged::kStaleBytes, "as after step " + std::to_string(state.step)};
    }
    for (const auto& [rank, other] : lives_.uninterrupted.ranks) {
      const HeldState* const state = other.held_at(step_);
      const std::string* const theirs = state == nullptr ? nullptr : value_of(state->names, name);
      if (rank == pair_.rank || theirs == nullptr || *theirs != *found) continue;
      return {judged::kWrongOwner, "that of rank " + std::to_string(rank)};
    }
    if (wanted != nullptr && is_tensor(*wanted) && form_of(*wanted) != form_of(*found)) {
      return {Code::kShapeDrift,
              "is " + form_of(*found).substr(1) + ", was " + form_of(*wanted).substr(1), false};
    }
    return {judged::kBitMismatch, "with other content", false};
  }

 private:
  const ResumedLife& lives_;
  const RankPair& pair_;
  std::int64_t step_;
  const HeldState* start_;
};

/// Of the names that a step of life A changed since its start, how many a state has as they were
/// after that step.
struct Score {
  std::size_t equal = 0;
  std::size_t all = 0;
  bool light = false;

  double share() const {
    return all == 0 ? 0 : static_cast<double>(equal) / static_cast<double>(all);
  }
};

void add_score(const WatchedValues& found, const HeldState& then, const HeldState* start,
               const std::set<std::string>& noise, Score& score) {
  score.light = score.light || then.light;
  for (const auto& [name, value] : then.names) {
    const std::string* const fresh = start == nullptr ? nullptr : value_of(start->names, name);
    if (noise.contains(name) || (fresh != nullptr && *fresh == value)) continue;
    const std::string* const own = value_of(found, name);
    if (judged_as(name) == Judged::kNot || is_other_cache(name, value, own)) continue;
    ++score.all;
    if (own != nullptr && *own == value) ++score.equal;
  }
}

/// Returns a path with every number replaced, so that the files of all steps look the same.
std::string pattern_of(const std::string& path) {
  std::string pattern;
  for (const char c : path) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) pattern += c;
    if (digit && !pattern.ends_with('#')) pattern += '#';
  }
  return pattern;
}

using SaveKinds = std::set<std::pair<std::int64_t, std::string>>;

/// Returns what was saved completely after each step, by rank and kind of path.
std::map<std::int64_t, SaveKinds> complete_saves(const ResumedLife& lives) {
  std::map<std::int64_t, SaveKinds> saves;
  for (const auto& [rank, recording] : lives.killed.ranks) {
    for (const auto& save : recording.saves) {
      const bool tensors =
          std::ranges::any_of(save.leaves, [](const auto& leaf) { return is_tensor(leaf.second); });
      // Another thread may save the state of an earlier step.
      if (!save.complete || save.aside || !tensors || recording.was_cut_at(save)) continue;
      saves[lives.killed_from + save.step].emplace(rank, save.by + " " + pattern_of(save.path));
    }
  }
  return saves;
}

/// Returns the values that any rank handed to a save of the killed life.
std::set<std::string> handed_over(const ResumedLife& lives) {
  std::set<std::string> values;
  for (const auto& [rank, recording] : lives.killed.ranks) {
    for (const auto& save : recording.saves) {
      for (const auto& [name, value] : save.leaves) values.insert(value);
    }
  }
  return values;
}

/// True if both lives ended with the same value.
bool equal_at_end(const RankPair& pair, const std::string& name) {
  const HeldState* const wanted = pair.before.held_at_end();
  const HeldState* const found = pair.after.held_at_end();
  if (wanted == nullptr || found == nullptr) return false;
  const std::string* const value = value_of(wanted->names, name);
  const std::string* const own = value_of(found->names, name);
  return value != nullptr && own != nullptr && *value == *own;
}

void count(const RankPair& pair, const std::string& name, const std::string& value,
           WatchJudgement& judgement) {
  auto& rank = judgement.ranks[pair.rank];
  rank.rank = pair.rank;
  ++rank.compared;
  const auto elements = elements_in(value);
  rank.elements += elements.value_or(1);
  if (kind_of(name) == "rng") {
    judgement.counts.random_states.insert(name);
  } else if (elements) {
    judgement.counts.tensors.insert(name);
  } else {
    judgement.counts.values.insert(name);
  }
}

/// Compares first states, rank by rank.
class StateComparison {
 public:
  StateComparison(const ResumedLife& lives, std::int64_t from, WatchJudgement& judgement)
      : lives_(lives), from_(from), judgement_(judgement), saved_(handed_over(lives)) {}

  void compare(const RankPair& pair) {
    const HeldState* const wanted = pair.before.held_at(from_);
    const HeldState* const found = pair.after.held_at(0);
    if (wanted == nullptr || found == nullptr) return;
    const Origin origin(lives_, pair, from_);
    for (const auto& [name, value] : wanted->names) {
      const std::string* const own = value_of(found->names, name);
      const bool seen = own != nullptr || !found->light;
      if (lives_.noise.contains(name) || !seen) continue;
      if (judged_as(name) != Judged::kNot) count(pair, name, value, judgement_);
      if (own == nullptr || *own != value) add(pair, name, value, own, origin);
    }
    if (wanted->light && !found->light) {
      judgement_.not_judged["large tensors of rank " + std::to_string(pair.rank)] =
          "not recorded in life A after step " + std::to_string(from_) +
          ", where the rank saved nothing";
    }
    for (const auto& [name, value] : found->names) {
      const bool weight = kind_of(name) == "param" || kind_of(name) == "group";
      if (!weight || wanted->light || wanted->names.contains(name)) continue;
      if (lives_.noise.contains(name)) continue;
      decisive_.add_name(pair.rank, name,
                         {.code = judged::kLostObject,
                          .text = "which life A does not hold",
                          .life = lives_.life,
                          .step = from_,
                          .found = value});
    }
  }

  StateFindings findings() && {
    return {decisive_.take(), without_effect_.take(), explanations_.take()};
  }

 private:
  void add(const RankPair& pair, const std::string& name, const std::string& value,
           const std::string* own, const Origin& origin) {
    const Wrong wrong = origin.of(name, &value, own);
    const bool stream = kind_of(name) == "rng" && wrong.code == judged::kBitMismatch;
    WatchFinding finding{.severity = Severity::kNote,
                         .code = stream ? judged::kRngDrift : wrong.code,
                         .text = wrong.text,
                         .life = lives_.life,
                         .step = from_,
                         .expected = value,
                         .found = own == nullptr ? "" : *own};
    switch (judged_as(name)) {
      case Judged::kNot:
        return explanations_.add_name(pair.rank, name, std::move(finding));
      case Judged::kByEffect:
        if (saved_.contains(value) || wrong.code == judged::kWrongOwner) break;
        return without_effect_.add_name(pair.rank, name, std::move(finding));
      case Judged::kIfOfOneSize:
        // What the first forward fills is known to be right only at the end.
        if (is_other_cache(name, value, own) || pair.after.held_at_end() == nullptr) {
          return explanations_.add_name(pair.rank, name, std::move(finding));
        }
        [[fallthrough]];
      case Judged::kToTheEnd:
        if (!equal_at_end(pair, name)) break;
        return without_effect_.add_name(pair.rank, name, std::move(finding));
      case Judged::kTensors:
        if (wrong.known || is_tensor(value)) break;
        return decisive_.add_name(pair.rank, name, std::move(finding));
      case Judged::kStrictly:
        break;
    }
    finding.severity = Severity::kFail;
    decisive_.add_name(pair.rank, name, std::move(finding));
  }

  const ResumedLife& lives_;
  std::int64_t from_;
  WatchJudgement& judgement_;
  std::set<std::string> saved_;
  FindingBook decisive_;
  FindingBook without_effect_;
  FindingBook explanations_;
};

}  // namespace

std::optional<std::int64_t> continues_from(const ResumedLife& lives) {
  std::map<std::int64_t, Score> scores;
  for (const auto& pair : pairs_of(lives.uninterrupted, lives.resumed)) {
    const HeldState* const found = pair.after.held_at(0);
    const HeldState* const start = pair.before.held_at(0);
    if (found == nullptr || start == nullptr) return std::nullopt;
    for (std::int64_t step = 1; step <= pair.before.last_step(); ++step) {
      const HeldState* const then = pair.before.held_at(step);
      if (then != nullptr) add_score(found->names, *then, start, lives.noise, scores[step]);
    }
  }
  if (scores.empty()) return std::nullopt;
  const auto better = [](const Score& a, const Score& b) {
    return a.share() != b.share() ? a.share() > b.share() : a.light < b.light;
  };
  std::int64_t best = 0;
  for (const auto& [step, score] : scores) {
    const bool taken = best == 0 ? score.equal > 0 : !better(scores[best], score);
    if (taken && score.equal > 0) best = step;
  }
  return best;
}

std::optional<std::int64_t> newest_save(const ResumedLife& lives, std::int64_t from) {
  const auto saves = complete_saves(lives);
  const auto own = saves.find(from);
  std::optional<std::int64_t> newest;
  for (const auto& [step, kinds] : saves) {
    if (own == saves.end() || std::ranges::includes(kinds, own->second)) newest = step;
  }
  return newest;
}

bool saved_at(const ResumedLife& lives, std::int64_t step) {
  return complete_saves(lives).contains(step);
}

bool names_save(const ResumedLife& lives, const std::vector<std::string>& words, std::int64_t from,
                std::int64_t newest) {
  const auto named_at = [&](const std::string& word, std::int64_t step) {
    for (const auto& [rank, recording] : lives.killed.ranks) {
      for (const auto& save : recording.saves) {
        if (lives.killed_from + save.step == step && save.path.find(word) != std::string::npos) {
          return true;
        }
      }
    }
    return false;
  };
  return std::ranges::any_of(words, [&](std::string word) {
    word = word.substr(word.find('=') + 1);  // all of it if there is none
    while (word.ends_with('/')) word.pop_back();
    if (word.starts_with("./")) word.erase(0, 2);
    return !word.empty() && named_at(word, from) && !named_at(word, newest);
  });
}

StateFindings compare_states(const ResumedLife& lives, std::int64_t from,
                             WatchJudgement& judgement) {
  StateComparison comparison(lives, from, judgement);
  for (const auto& pair : pairs_of(lives.uninterrupted, lives.resumed)) comparison.compare(pair);
  return std::move(comparison).findings();
}

std::vector<WatchFinding> compare_ends(const ResumedLife& lives, std::int64_t from) {
  FindingBook book;
  for (const auto& pair : pairs_of(lives.uninterrupted, lives.resumed)) {
    const HeldState* const wanted_there = pair.before.held_at_end();
    const HeldState* const found_there = pair.after.held_at_end();
    if (wanted_there == nullptr || found_there == nullptr) continue;
    const HeldState& wanted = *wanted_there;
    const HeldState& found = *found_there;
    if (wanted.light || found.light || wanted.step != from + found.step) continue;
    const Origin origin(lives, pair, wanted.step);
    for (const auto& [name, value] : wanted.names) {
      if (lives.noise.contains(name) || !judged_at_end(name)) continue;
      const std::string* const own = value_of(found.names, name);
      if (own != nullptr && *own == value) continue;
      if (is_other_cache(name, value, own)) continue;
      const Wrong wrong = origin.of(name, &value, own);
      book.add_name(pair.rank, name,
                    {.code = wrong.code,
                     .text = wrong.text + " at the end",
                     .life = lives.life,
                     .step = wanted.step,
                     .expected = value,
                     .found = own == nullptr ? "" : *own});
    }
  }
  return book.take();
}

}  // namespace reprise::driver
