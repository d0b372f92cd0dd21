#include "driver/watch/watch_result.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace reprise::driver {
namespace {

using reports::LifeOutcome;
using reports::ScenarioResult;
using reports::Verdict;

constexpr const char* kLayout = "as started";
constexpr const char* kOtherLayout = "as --at says";
constexpr int kKilledExit = 137;

/// Returns the number as a value of a report; nothing if there is none, or it is not finite.
std::optional<double> first_number(const std::vector<std::string>& hex) {
  if (hex.empty()) return std::nullopt;
  const double value = std::strtod(hex.front().c_str(), nullptr);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Returns the step as the first rank recorded it that saw a loss; null if none did.
const WatchedStep* step_with_loss(const LifeRecording& life, std::int64_t step) {
  for (const auto& [rank, recording] : life.ranks) {
    const auto at = recording.steps.find(step);
    if (at != recording.steps.end() && first_number(at->second.losses)) return &at->second;
  }
  return nullptr;
}

class ResultWriter {
 public:
  ResultWriter(const WatchedLives& lives, const WatchJudgement& judgement)
      : lives_(lives), judgement_(judgement) {}

  ScenarioResult write() {
    result_.proves = "a resumed run holds, takes and computes what an uninterrupted one does";
    result_.verdict = judgement_.verdict;
    result_.world = static_cast<std::int32_t>(a().ranks.size());
    add_life(lives_.uninterrupted, LifeOutcome::kRan, 0);
    for (std::size_t i = 0; i < lives_.resumed.size(); ++i) {
      const bool last = i + 1 == lives_.resumed.size();
      const bool killed = !last || lives_.resumed.size() == 1;
      add_life(lives_.resumed[i], killed ? LifeOutcome::kCutShort : LifeOutcome::kContinued,
               i == 0 ? 0 : judgement_.continues_from.value_or(0));
      if (killed) add_kill(lives_.resumed[i]);
    }
    add_ranks();
    add_failure();
    return std::move(result_);
  }

 private:
  const LifeRecording& a() const { return lives_.uninterrupted.recording; }

  /// Returns the exit code to report of a life; a failed one has at least 1.
  static int exit_of(const WatchedLife& life, LifeOutcome outcome) {
    if (outcome == LifeOutcome::kCutShort) {
      return life.exit && life.exit->exit_code != 0 ? life.exit->exit_code : kKilledExit;
    }
    return life.exit ? life.exit->exit_code : 0;
  }

  void add_life(const WatchedLife& life, LifeOutcome outcome, std::int64_t from) {
    const std::size_t number = result_.lives.size();
    const bool other = number >= 2 && tells_wholes(a());
    reports::Life own{.layout = other ? kOtherLayout : kLayout,
                      .outcome = outcome,
                      .exit_code = exit_of(life, outcome),
                      .first_step = from,
                      .last_step = from + life.recording.last_step()};
    for (const auto& finding : judgement_.findings) {
      const bool ended = finding.severity != Severity::kNote && finding.life == number &&
                         finding.where == "life " + life.name;
      if (!ended) continue;
      own.outcome = LifeOutcome::kFailed;
      own.code = name_of(finding.code);
      break;
    }
    result_.layouts.push_back(own.layout);
    result_.lives.push_back(own);
    for (std::int64_t step = 1; step <= life.recording.last_step(); ++step) {
      add_point(life.recording, from, step, number > 0);
    }
  }

  void add_point(const LifeRecording& life, std::int64_t from, std::int64_t step, bool compared) {
    const WatchedStep* const own = step_with_loss(life, step);
    if (own == nullptr) return;
    reports::TrainingPoint point{.step = from + step,
                                 .loss = *first_number(own->losses),
                                 .lr = first_number(own->lr).value_or(0)};
    const WatchedStep* const other = compared ? step_with_loss(a(), point.step) : nullptr;
    if (other != nullptr) {
      point.uninterrupted_loss = first_number(other->losses);
      point.uninterrupted_lr = first_number(other->lr).value_or(0);
    }
    result_.trajectory.push_back(point);
  }

  void add_kill(const WatchedLife& life) {
    const auto& ranks = life.recording.ranks;
    const auto at = std::ranges::find_if(
        ranks, [](const auto& rank) { return rank.second.killed.has_value(); });
    const bool fired = at != ranks.end();
    result_.faults.push_back({.kind = "kill",
                              .rank = fired ? static_cast<std::int32_t>(at->first) : 0,
                              .armed = true,
                              .reached = fired,
                              .fired = fired});
  }

  void add_ranks() {
    for (const auto& [rank, own] : judgement_.ranks) {
      result_.ranks.push_back(own);
      auto& added = result_.ranks.back();
      added.loaded_step =
          judgement_.continues_from.value_or(0) > 0 ? *judgement_.continues_from : -1;
      if (result_.ranks.size() > 1) continue;
      for (const auto& [name, why] : judgement_.not_judged)
        added.excused.push_back(name + ": " + why);
      for (const auto& finding : judgement_.findings) {
        if (finding.severity == Severity::kNote) added.excused.push_back(text_of(finding));
      }
    }
  }

  void add_failure() {
    if (judgement_.verdict == Verdict::kPass || judgement_.findings.empty()) return;
    const WatchFinding& cause = judgement_.findings.front();
    result_.code = name_of(cause.code);
    result_.reason = text_of(cause);
    reports::Failure failure{
        .cause = result_.reason,
        .life = cause.life,
        .layout = result_.layouts[std::min(cause.life, result_.layouts.size() - 1)],
        .step = cause.step,
        .key = cause.names.empty() ? "" : cause.names.front(),
        .saved = cause.expected,
        .loaded = cause.found,
        .comes_from = cause.names.empty() ? "" : cause.text};
    if (!cause.ranks.empty()) failure.rank = *cause.ranks.begin();
    for (std::size_t i = 1; i < judgement_.findings.size(); ++i) {
      const WatchFinding& other = judgement_.findings[i];
      if (other.severity == Severity::kNote) continue;
      failure.consequences.push_back(
          {.life = other.life,
           .ranks = {other.ranks.begin(), other.ranks.end()},
           .code = std::string(name_of(other.code)),
           .text = other.where + (other.where.empty() ? "" : ": ") + other.text});
    }
    std::istringstream log(cause.log);
    for (std::string line; std::getline(log, line);) {
      failure.consequences.push_back({.life = cause.life, .text = "printed: " + line});
    }
    if (!cause.names.empty() && failure.rank && cause.severity == Severity::kFail) {
      result_.first_difference = reports::FirstDifference{.rank = *failure.rank,
                                                          .key = failure.key,
                                                          .saved = failure.saved,
                                                          .loaded = failure.loaded,
                                                          .comes_from = failure.comes_from};
    }
    result_.failure = std::move(failure);
  }

  const WatchedLives& lives_;
  const WatchJudgement& judgement_;
  ScenarioResult result_;
};

}  // namespace

std::string text_of(const WatchFinding& finding) {
  std::string text = finding.where;
  if (!finding.ranks.empty()) {
    text += (text.empty() ? "" : " on ") +
            reports::ranks_text({finding.ranks.begin(), finding.ranks.end()});
  }
  return text + (text.empty() ? "" : ": ") + finding.text;
}

reports::ScenarioResult watch_result(const WatchedLives& lives, const WatchJudgement& judgement) {
  return ResultWriter(lives, judgement).write();
}

}  // namespace reprise::driver
