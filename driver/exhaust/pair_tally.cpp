#include "driver/exhaust/pair_tally.hpp"

#include <algorithm>
#include <utility>

#include "core/base/print.hpp"
#include "properties/state_judge.hpp"

namespace reprise::driver {
namespace {

std::string key_of(const ObjectLeaf& leaf) { return stored_key(leaf); }

std::string name_without_place(const std::string& key) {
  const auto parsed = parse_object_key(key);
  return parsed ? parsed->key : key;
}

void set_wrong(PairResult& result, FindingCode code, std::string what,
               SourceLine line = SourceLine::here()) {
  if (!result.what.empty() || !may_state(line, code)) return;  // keep the first problem
  result.outcome = PairOutcome::kWrong;
  result.code = name_of(code);
  result.what = std::move(what);
}

}  // namespace

PairTally::PairTally(const SavedLayout& saved, const PairRule& rule, std::int32_t ranks)
    : saved_(saved), rule_(rule), ranks_(ranks), objects_(saved.stored.objects.size()) {
  for (const auto& tensor : saved.model.tensors) {
    reached_.emplace_back(static_cast<std::size_t>(volume(tensor.shape)));
  }
}

void PairTally::find(FindingCode code, GlobalRank rank, const std::string& key,
                     const std::string& message, SourceLine line) {
  if (!wrong_ && may_state(line, code)) wrong_ = judged::Finding{code, key, message, rank, line};
}

void PairTally::delivered(GlobalRank rank, const StateDict& loaded) {
  const auto same = [&](const std::string& key, const Value& saved, const Value& own) {
    ++values_;
    const auto differing = differences(saved, own, 1);
    if (differing.empty()) return;
    const auto& first = differing.front();
    find(judged::kLostObject, rank, key + first.path,
         "saved " + first.left + ", delivered " + first.right);
  };
  same("common", saved_.stored.common, loaded.common);
  for (const auto& leaf : loaded.objects) {
    const std::string key = key_of(leaf);
    const GlobalObject* known = saved_.stored.object(key);
    if (known == nullptr || !rule_.delivers(leaf.key)) {
      find(judged::kLostObject, rank, key,
           known == nullptr ? "was delivered but not saved" : "was delivered to another layout");
      continue;
    }
    objects_[static_cast<std::size_t>(known - saved_.stored.objects.data())] = true;
    same(key, known->value, leaf.value);
  }
}

void PairTally::took(GlobalRank rank, const StateDict& model) {
  ++ended_;
  JudgeOptions options{.expected = ExpectedTensors::kItsPart, .comparable = sim::layout_free};
  for (const auto& object : model.objects) {
    if (!rule_.delivers(object.key)) options.skipped_objects.push_back(object.key);
  }
  const StateEvidence evidence = judge_state(saved_.model, {rank, &model}, options);
  elements_ += evidence.compared.elements;
  values_ += evidence.values;
  if (!evidence.findings.empty() && !wrong_) {
    wrong_ = evidence.findings.front();
    wrong_->rank = rank;
  }
  if (evidence.findings.empty()) mark(model);
}

void PairTally::mark(const StateDict& model) {
  static constexpr std::byte kReached{1};
  for (const auto& leaf : model.tensors) {
    const GlobalTensor* known = saved_.model.tensor(leaf.key);
    Bytes& reached = reached_[static_cast<std::size_t>(known - saved_.model.tensors.data())];
    for (const auto& piece : leaf.pieces) {
      if (piece.box.elements() == 0) continue;
      copy_strided({&kReached, Dims::filled(piece.box.ndim(), 0)},
                   {reached.data() + linear_index(piece.box.offset, known->shape),
                    contiguous_strides(known->shape)},
                   piece.box.extent, 1);
    }
  }
}

void PairTally::refused(GlobalRank rank, const Error& error) {
  ++ended_;
  errors_.push_back(error.within({.rank = rank}));
}

PairResult PairTally::result() const {
  PairResult result{.elements = elements_, .objects = values_};
  if (rule_.refused || !errors_.empty()) {
    judge_refusals(result);
    return result;
  }
  if (wrong_) {
    set_wrong(
        result, wrong_->code,
        "rank " + std::to_string(wrong_->rank->value) + ", " + wrong_->key + ": " + wrong_->text,
        wrong_->line);
    return result;
  }
  result.outcome = PairOutcome::kSame;
  judge_reach(result);
  return result;
}

/// A pair counts as refused only if every rank was refused with the code that the rule requires.
void PairTally::judge_refusals(PairResult& result) const {
  const std::string demanded =
      rule_.refused ? "must be refused with " + std::string(name_of(*rule_.refused)) : "must load";
  for (const auto& error : errors_) {
    if (rule_.refused && error.code() == *rule_.refused) continue;
    return set_wrong(result, error.code(), "it " + demanded + ", but ended with " + error.what());
  }
  if (static_cast<std::int32_t>(errors_.size()) < ranks_) {
    const auto loaded = ranks_ - static_cast<std::int32_t>(errors_.size());
    return set_wrong(result, Code::kLayoutMismatch,
                     "it " + demanded + ", and " + std::to_string(loaded) + " of " +
                         std::to_string(ranks_) + " ranks loaded it");
  }
  result.outcome = PairOutcome::kRefused;
  result.code = name_of(*rule_.refused);
}

/// Checks that every saved element was compared on some rank. The same is required of every stored
/// object that the rule does not exclude from the load.
void PairTally::judge_reach(PairResult& result) const {
  for (std::size_t t = 0; t < reached_.size(); ++t) {
    const auto gap = std::find(reached_[t].begin(), reached_[t].end(), std::byte{0});
    if (gap == reached_[t].end()) continue;
    const GlobalTensor& tensor = saved_.model.tensors[t];
    return set_wrong(result, Code::kCoverageGap,
                     tensor.key + ": no rank has element " +
                         to_string(index_at(gap - reached_[t].begin(), tensor.shape)));
  }
  for (std::size_t o = 0; o < objects_.size(); ++o) {
    const std::string& key = saved_.stored.objects[o].key;
    if (rule_.delivers(name_without_place(key))) {
      if (objects_[o]) continue;
      return set_wrong(result, judged::kLostObject, key + " was saved but delivered to no rank");
    }
    ++result.left;
  }
}

}  // namespace reprise::driver
