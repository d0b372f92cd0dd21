#include "driver/witness/course_judge.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <sstream>

namespace reprise::driver {
namespace {

std::string hex_text(double value) {
  std::ostringstream text;
  text << std::hexfloat << value;
  return text.str();
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

const WitnessStep* step_told(const RankWitness& rank, std::int64_t step) {
  const WitnessStep* last = nullptr;
  for (const auto& told : rank.steps) {
    if (told.step == step) last = &told;
  }
  return last;
}

/// Requires that the ranks report the same metrics, because each metric describes the whole job.
void judge_ranks_alike(std::size_t number, const LifeEvidence& life, const char* metric,
                       WitnessFindings& findings) {
  for (const auto step : steps_of(life.ranks)) {
    const auto first = metric_at(life.ranks, step, metric);
    for (const auto& rank : life.ranks) {
      const WitnessStep* told = step_told(rank, step);
      if (!first || told == nullptr || !told->metrics.contains(metric)) continue;
      if (same_bits(told->metrics.at(metric), *first)) continue;
      findings.push_back({.code = judged::kTrajectoryDivergence,
                          .text = life_name(number) + ", step " + std::to_string(step) + ": the " +
                                  metric + " is " + hex_text(told->metrics.at(metric)) + ", and " +
                                  hex_text(*first) + " on another rank",
                          .rank = rank.rank,
                          .life = number});
      return;
    }
  }
}

/// Compares the metric of each step with that of the reference. Reports the first difference.
void judge_metric(std::size_t number, const LifeEvidence& life, const LifeEvidence& reference,
                  const std::string& called, const char* metric, WitnessFindings& findings) {
  for (const auto step : steps_of(life.ranks)) {
    const auto here = metric_at(life.ranks, step, metric);
    const auto there = metric_at(reference.ranks, step, metric);
    if (!here && !there) continue;
    if (here && there && same_bits(*here, *there)) continue;
    const std::string where = life_name(number) + ", step " + std::to_string(step) + ": the ";
    if (here && there) {
      findings.push_back({.code = judged::kTrajectoryDivergence,
                          .text = where + metric + " is " + hex_text(*here) + ", and " +
                                  hex_text(*there) + " in " + called,
                          .life = number});
    } else {
      findings.push_back({.code = judged::kOracleVacuous,
                          .text = where + metric + " is told only in " +
                                  (here ? std::string("this life") : called) +
                                  ", so there is nothing to compare it with",
                          .life = number,
                          .inconclusive = true});
    }
    return;
  }
}

std::optional<WholeState> end_of(const LifeEvidence& life, std::size_t number) {
  WitnessFindings ignored;
  return merge_states(life.ranks, StateMoment::kEnd, 0, number, ignored);
}

/// Compares the states at the end, if both lives ended at the same step. If `required` is true and
/// they did not, adds an inconclusive finding.
void judge_ends(std::size_t number, const LifeEvidence& life, const LifeEvidence& reference,
                const std::string& called, bool required, WitnessFindings& findings) {
  const auto here = end_of(life, number);
  const auto there = end_of(reference, number);
  if (!here || !there || here->step != there->step) {
    if (!required) return;
    const auto text = [](const std::optional<WholeState>& end) {
      return end ? "at step " + std::to_string(end->step) : std::string("nowhere");
    };
    findings.push_back({.code = judged::kOracleVacuous,
                        .text = life_name(number) + " ends " + text(here) + ", and " + called +
                                " ends " + text(there) + ", so their ends can't be compared",
                        .life = number,
                        .inconclusive = true});
    return;
  }
  const auto find = [&](const std::string& key) {
    findings.push_back(
        {.code = judged::kTrajectoryDivergence,
         .text = life_name(number) + ", at the end: " + key + " differs from " + called,
         .key = key,
         .step = here->step,
         .when = StateMoment::kEnd,
         .life = number});
  };
  for (const auto& [key, tensor] : here->tensors) {
    const auto other = there->tensors.find(key);
    if (other != there->tensors.end() && other->second.digest != tensor.digest) return find(key);
  }
  for (const auto& [name, object] : here->objects) {
    const auto other = there->objects.find(name);
    const bool both = other != there->objects.end() && object.digest && other->second.digest;
    if (both && object.digest != other->second.digest) return find(name.first);
  }
}

/// The samples that all ranks used in one step, and the life in which they used them.
struct TakenStep {
  std::vector<std::int64_t> samples;
  std::size_t life = 0;
};
using Taken = std::map<std::int64_t, TakenStep>;

void add_samples(const LifeEvidence& life, std::size_t number, Taken& taken) {
  for (const auto step : steps_of(life.ranks)) {
    TakenStep& at = taken[step];
    at = {.samples = {}, .life = number};
    for (const auto& rank : life.ranks) {
      const WitnessStep* told = step_told(rank, step);
      if (told != nullptr) {
        at.samples.insert(at.samples.end(), told->samples.begin(), told->samples.end());
      }
    }
  }
}

/// Returns the samples of the steps that were not undone. A load undoes all steps after the step
/// that it loaded.
Taken effective_history(const std::vector<LifeEvidence>& lives) {
  Taken taken;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const bool begun = std::any_of(lives[i].ranks.begin(), lives[i].ranks.end(),
                                   [](const RankWitness& rank) { return !rank.steps.empty(); });
    if (begun) taken.erase(taken.upper_bound(loaded_by(lives[i]).value_or(0)), taken.end());
    add_samples(lives[i], i, taken);
  }
  return taken;
}

std::set<std::int64_t> all_of(const Taken& taken, std::int64_t last_step) {
  std::set<std::int64_t> all;
  for (const auto& [step, at] : taken) {
    if (step <= last_step) all.insert(at.samples.begin(), at.samples.end());
  }
  return all;
}

bool has_no_hole(const std::set<std::int64_t>& samples) {
  return samples.empty() ||
         *samples.rbegin() - *samples.begin() + 1 == static_cast<std::int64_t>(samples.size());
}

}  // namespace

std::vector<std::int64_t> steps_of(const std::vector<RankWitness>& ranks) {
  std::set<std::int64_t> steps;
  for (const auto& rank : ranks) {
    for (const auto& step : rank.steps) steps.insert(step.step);
  }
  return {steps.begin(), steps.end()};
}

std::optional<double> metric_at(const std::vector<RankWitness>& ranks, std::int64_t step,
                                const std::string& metric) {
  for (const auto& rank : ranks) {
    const WitnessStep* told = step_told(rank, step);
    if (told != nullptr && told->metrics.contains(metric)) return told->metrics.at(metric);
  }
  return std::nullopt;
}

std::optional<std::int64_t> loaded_by(const LifeEvidence& life) {
  for (const auto& rank : life.ranks) {
    for (const auto& state : rank.states) {
      if (state.when == StateMoment::kLoaded) return state.step;
    }
  }
  return std::nullopt;
}

void judge_course(std::size_t number, const LifeEvidence& life, const CourseReference& reference,
                  WitnessFindings& findings) {
  for (const char* metric : kWitnessMetrics) {
    const auto found = findings.size();
    judge_ranks_alike(number, life, metric, findings);
    judge_metric(number, life, reference.life, reference.called, metric, findings);
    if (findings.size() > found) break;  // the other metrics differ for the same reason
  }
  judge_ends(number, life, reference.life, reference.called, reference.same_end, findings);
}

void judge_schedule(std::size_t number, const LifeEvidence& life, const LifeEvidence& uninterrupted,
                    WitnessFindings& findings) {
  judge_metric(number, life, uninterrupted, "the uninterrupted run", "lr", findings);
}

void judge_first_loss(std::size_t number, const LifeEvidence& life,
                      const LifeEvidence& uninterrupted, double within, WitnessFindings& findings) {
  const auto loaded = loaded_by(life);
  if (!loaded) return;
  const auto here = metric_at(life.ranks, *loaded + 1, "loss");
  const auto there = metric_at(uninterrupted.ranks, *loaded + 1, "loss");
  if (!here || !there || std::abs(*here - *there) <= within * std::abs(*there)) return;
  std::ostringstream text;
  text << life_name(number) << ", step " << *loaded + 1 << ": the first loss after the load is "
       << *here << ", and " << *there << " in the uninterrupted run; 'loss_within' allows "
       << within;
  findings.push_back({.code = judged::kTrajectoryDivergence, .text = text.str(), .life = number});
}

namespace {

/// Compares the samples of the lives with those of an uninterrupted run.
class SampleJudge {
 public:
  SampleJudge(const std::vector<LifeEvidence>& lives, WitnessFindings& findings)
      : lives_(lives), taken_(effective_history(lives)), findings_(findings) {}

  void judge_twice() {
    std::map<std::int64_t, std::int64_t> seen;
    for (const auto& [step, at] : taken_) {
      for (const auto sample : at.samples) {
        const auto [first, added] = seen.emplace(sample, step);
        if (added) continue;
        return find("sample " + std::to_string(sample) + " is taken in step " +
                    std::to_string(first->second) + " and again in step " + std::to_string(step));
      }
    }
  }

  void judge_against(const LifeEvidence& control) {
    if (taken_.empty()) return;
    Taken there;
    add_samples(control, 0, there);
    if (judge_silence(there)) return;
    const std::int64_t last = taken_.rbegin()->first;
    const auto here_all = all_of(taken_, last);
    const auto there_all = all_of(there, last);
    // Under another layout, a step can use a different number of samples.
    const bool other_count = here_all.size() != there_all.size() && has_other_layout();
    if (here_all == there_all ||
        (other_count && *here_all.begin() == *there_all.begin() && has_no_hole(here_all))) {
      return;
    }
    for (const auto sample : there_all) {
      if (here_all.contains(sample)) continue;
      return find("sample " + std::to_string(sample) + " is left out by step " +
                  std::to_string(last) + "; the uninterrupted run takes it");
    }
    find("samples are taken that the uninterrupted run does not take by step " +
         std::to_string(last));
  }

 private:
  void find(const std::string& text) {
    findings_.push_back({.code = judged::kDataStreamSkip, .text = text, .life = lives_.size() - 1});
  }

  bool has_other_layout() const {
    return std::any_of(taken_.begin(), taken_.end(), [&](const auto& entry) {
      return lives_[entry.second.life].plan.layout != lives_.front().plan.layout;
    });
  }

  /// Reports a step whose samples are known for only one of the two runs. Returns true if there is
  /// such a step, or if no samples are reported at all.
  bool judge_silence(const Taken& there) {
    for (const auto& [step, at] : taken_) {
      const auto other = there.find(step);
      const bool silent = other == there.end() || other->second.samples.empty();
      if (at.samples.empty() == silent) continue;
      find("the samples of step " + std::to_string(step) + " are told only in " +
           (at.samples.empty() ? "the uninterrupted run" : life_name(at.life)));
      findings_.back().inconclusive = true;
      return true;
    }
    return all_of(taken_, taken_.rbegin()->first).empty();
  }

  const std::vector<LifeEvidence>& lives_;
  Taken taken_;
  WitnessFindings& findings_;
};

}  // namespace

void judge_samples(const std::vector<LifeEvidence>& lives, const LifeEvidence* control,
                   WitnessFindings& findings) {
  SampleJudge judge(lives, findings);
  const std::size_t before = findings.size();
  judge.judge_twice();
  if (control != nullptr && findings.size() == before) judge.judge_against(*control);
}

}  // namespace reprise::driver
