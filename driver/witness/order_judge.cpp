#include "driver/witness/order_judge.hpp"

#include <algorithm>

namespace reprise::driver {
namespace {

/// Follows one rank through its life.
class RankOrder {
 public:
  RankOrder(const RankWitness& rank, const LifeOrder& order)
      : rank_(rank), must_load_(order.loads), first_(order.zero_based ? 0 : 1) {}

  /// Returns what is wrong first; empty if nothing is.
  std::string flaw() {
    std::size_t states = 0;
    for (const auto& step : rank_.steps) {
      while (states < step.states_before) follow(rank_.states[states++]);
      follow(step);
    }
    while (states < rank_.states.size()) follow(rank_.states[states++]);
    return std::move(flaw_);
  }

 private:
  void find(const std::string& flaw, SourceLine line = SourceLine::here()) {
    if (flaw_.empty() && may_state(line, judged::kOracleVacuous)) flaw_ = flaw;
  }
  std::string reached() const { return "when " + std::to_string(done_) + " steps are done"; }

  void follow(const WitnessState& state) {
    const std::string what = "describes the state '" + std::string(name_of(state.when)) +
                             "' of step " + std::to_string(state.step);
    if (ended_) find(what + " after its end");
    if (state.when == StateMoment::kLoaded) {
      must_load_ = false;
    } else if (must_load_) {
      find(what + " before what it loaded");
    } else if (state.step != done_) {
      find(what + " " + reached());
    }
    done_ = state.step;
    ended_ = state.when == StateMoment::kEnd;
  }

  void follow(const WitnessStep& step) {
    const std::string what = "reports step " + std::to_string(step.step);
    if (ended_) find(what + " after its end");
    if (must_load_) find(what + " before what it loaded");
    if (step.step != done_ + first_) find(what + " " + reached());
    done_ = step.step + 1 - first_;
  }

  const RankWitness& rank_;
  bool must_load_;
  std::int64_t first_;
  std::int64_t done_ = 0;  ///< number of steps that are done
  bool ended_ = false;
  std::string flaw_;
};

}  // namespace

void judge_order(std::size_t number, const LifeEvidence& life, const std::string& called,
                 const LifeOrder& order, Findings& findings) {
  const auto find = [&](const RankWitness& rank, const std::string& text,
                        SourceLine line = SourceLine::here()) {
    findings.push_back({.code = judged::kOracleVacuous,
                        .text = called + ": rank " + std::to_string(rank.rank) + " " + text,
                        .rank = rank_numbered(rank.rank),
                        .line = line,
                        .severity = Severity::kInconclusive,
                        .life = number});
  };
  for (const auto& rank : life.ranks) {
    const std::string flaw = RankOrder(rank, order).flaw();
    if (!flaw.empty()) return find(rank, flaw);
  }
  if (life.ranks.empty() || !ended_as_planned(life) || life.plan.kill) return;
  const auto& first = life.ranks.front().steps;
  for (const auto& rank : life.ranks) {
    const bool same = std::equal(first.begin(), first.end(), rank.steps.begin(), rank.steps.end(),
                                 [](const auto& a, const auto& b) { return a.step == b.step; });
    if (!same) return find(rank, "reports other steps than rank 0");
  }
}

}  // namespace reprise::driver
