#include "driver/witness/course_judge.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <span>
#include <sstream>

#include "core/base/hash.hpp"

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

/// Requires that every rank reports the same loss, because it is the loss of the whole job.
void judge_ranks_alike(std::size_t number, const LifeEvidence& life, WitnessFindings& findings) {
  for (const auto step : steps_of(life.ranks)) {
    const auto loss = metric_at(life.ranks, step, "loss");
    for (const auto& rank : life.ranks) {
      const WitnessStep* told = step_told(rank, step);
      if (!loss || told == nullptr || !told->metrics.contains("loss")) continue;
      if (same_bits(told->metrics.at("loss"), *loss)) continue;
      findings.push_back({.code = judged::kTrajectoryDivergence,
                          .text = life_name(number) + ", step " + std::to_string(step) +
                                  ": the loss is " + hex_text(told->metrics.at("loss")) + ", and " +
                                  hex_text(*loss) + " on another rank",
                          .rank = rank.rank,
                          .life = number});
      return;
    }
  }
}

void judge_steps(std::size_t number, const LifeEvidence& life, const LifeEvidence& reference,
                 const std::string& called, std::span<const char* const> metrics,
                 WitnessFindings& findings) {
  for (const auto step : steps_of(life.ranks)) {
    for (const char* metric : metrics) {
      const auto here = metric_at(life.ranks, step, metric);
      const auto there = metric_at(reference.ranks, step, metric);
      if (!here || !there || same_bits(*here, *there)) continue;
      findings.push_back({.code = judged::kTrajectoryDivergence,
                          .text = life_name(number) + ", step " + std::to_string(step) + ": the " +
                                  metric + " is " + hex_text(*here) + ", and " + hex_text(*there) +
                                  " in " + called,
                          .life = number});
      return;
    }
  }
}

std::optional<WholeState> end_of(const LifeEvidence& life, std::size_t number) {
  WitnessFindings ignored;
  return merge_states(life.ranks, StateMoment::kEnd, 0, number, ignored);
}

void judge_ends(std::size_t number, const LifeEvidence& life, const LifeEvidence& reference,
                const std::string& called, WitnessFindings& findings) {
  const auto here = end_of(life, number);
  const auto there = end_of(reference, number);
  if (!here || !there || here->step != there->step) return;
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
  for (const auto& [name, digest] : here->objects) {
    const auto other = there->objects.find(name);
    const bool both = other != there->objects.end() && digest && other->second;
    if (both && *digest != *other->second) return find(name.first);
  }
}

/// For each step, the samples that all ranks took.
using Taken = std::map<std::int64_t, std::vector<std::int64_t>>;

void add_samples(const LifeEvidence& life, Taken& taken) {
  for (const auto step : steps_of(life.ranks)) {
    auto& samples = taken[step];
    samples.clear();
    for (const auto& rank : life.ranks) {
      const WitnessStep* told = step_told(rank, step);
      if (told != nullptr) {
        samples.insert(samples.end(), told->samples.begin(), told->samples.end());
      }
    }
  }
}

/// Returns the samples of the steps that were not undone. A load undoes all steps after the step
/// that it loaded.
Taken effective_history(const std::vector<LifeEvidence>& lives) {
  Taken taken;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    std::int64_t from = 0;
    for (const auto& rank : lives[i].ranks) {
      for (const auto& state : rank.states) {
        if (state.when == StateMoment::kLoaded) from = state.step;
        if (state.when == StateMoment::kLoaded) break;
      }
    }
    const bool begun = std::any_of(lives[i].ranks.begin(), lives[i].ranks.end(),
                                   [](const RankWitness& rank) { return !rank.steps.empty(); });
    if (begun) taken.erase(taken.upper_bound(from), taken.end());
    add_samples(lives[i], taken);
  }
  return taken;
}

std::set<std::int64_t> all_of(const Taken& taken, std::int64_t last_step) {
  std::set<std::int64_t> all;
  for (const auto& [step, samples] : taken) {
    if (step <= last_step) all.insert(samples.begin(), samples.end());
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

void judge_course(std::size_t number, const LifeEvidence& life, const LifeEvidence& reference,
                  const std::string& called, WitnessFindings& findings) {
  judge_ranks_alike(number, life, findings);
  judge_steps(number, life, reference, called, kWitnessMetrics, findings);
  judge_ends(number, life, reference, called, findings);
}

void judge_schedule(std::size_t number, const LifeEvidence& life, const LifeEvidence& uninterrupted,
                    WitnessFindings& findings) {
  static constexpr std::array kOfNoLayout = {"lr"};
  judge_steps(number, life, uninterrupted, "the uninterrupted run", kOfNoLayout, findings);
}

void judge_samples(const std::vector<LifeEvidence>& lives, const LifeEvidence* control,
                   WitnessFindings& findings) {
  const Taken taken = effective_history(lives);
  const auto find = [&](const std::string& text) {
    findings.push_back({.code = judged::kDataStreamSkip, .text = text, .life = lives.size() - 1});
  };
  std::map<std::int64_t, std::int64_t> seen;
  for (const auto& [step, samples] : taken) {
    for (const auto sample : samples) {
      const auto [at, added] = seen.emplace(sample, step);
      if (added) continue;
      return find("sample " + std::to_string(sample) + " is taken in step " +
                  std::to_string(at->second) + " and again in step " + std::to_string(step));
    }
  }
  if (control == nullptr || taken.empty()) return;
  Taken there;
  add_samples(*control, there);
  const std::int64_t last = taken.rbegin()->first;
  const auto here_all = all_of(taken, last);
  const auto there_all = all_of(there, last);
  if (here_all == there_all || (here_all.size() != there_all.size() && has_no_hole(here_all))) {
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

}  // namespace reprise::driver
