#include "driver/witness/sample_judge.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string_view>

#include "core/base/print.hpp"
#include "driver/witness/step_table.hpp"

namespace reprise::driver {
namespace {

using Layout = std::map<std::string, std::int64_t>;

/// How often each sample is taken.
using Counts = std::map<std::int64_t, std::int64_t>;

std::int64_t total_of(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& entry) { return sum + entry.second; });
}

void add(const Counts& more, Counts& counts) {
  for (const auto& [sample, count] : more) counts[sample] += count;
}

/// Returns by how much `a` takes samples more often than `b`.
Counts surplus_of(const Counts& a, const Counts& b) {
  Counts surplus;
  for (const auto& [sample, count] : a) {
    const auto there = b.find(sample);
    const std::int64_t more = count - (there == b.end() ? 0 : there->second);
    if (more > 0) surplus[sample] = more;
  }
  return surplus;
}

/// Returns the samples as text, such as "4, 5 (2 times), 6".
std::string samples_text(const Counts& counts) {
  constexpr std::size_t kListed = 16;
  std::vector<std::string> samples;
  for (const auto& [sample, count] : counts) {
    samples.push_back(std::to_string(sample) +
                      (count == 1 ? "" : " (" + std::to_string(count) + " times)"));
  }
  return samples.empty() ? "no samples" : "samples " + join_first(samples, kListed);
}

enum class Axis : std::uint8_t {
  kData,   ///< its ranks take different samples
  kModel,  ///< its ranks work on the same samples
  kUnknown
};

/// Tells what an axis is by the names that trainers commonly give it. The ranks of an axis such as
/// ep may work on the same samples or on different ones.
Axis kind_of(std::string_view axis) {
  constexpr std::array<std::string_view, 5> kData = {"dp", "fsdp", "ddp", "hsdp", "data"};
  constexpr std::array<std::string_view, 9> kModel = {"tp",     "pp",   "cp",      "sp",   "vp",
                                                      "tensor", "pipe", "context", "model"};
  const auto begins = [axis](std::string_view name) { return axis.starts_with(name); };
  if (std::any_of(kData.begin(), kData.end(), begins)) return Axis::kData;
  return std::any_of(kModel.begin(), kModel.end(), begins) ? Axis::kModel : Axis::kUnknown;
}

std::int64_t ranks_along(const Layout& layout, Axis kind) {
  std::int64_t ranks = 1;
  for (const auto& [axis, size] : layout) {
    if (kind_of(axis) == kind) ranks *= std::max<std::int64_t>(size, 1);
  }
  return ranks;
}

/// True if ranks take the same samples under both layouts: these differ only in axes of the model.
bool same_data(const Layout& a, const Layout& b) {
  const auto data = [](const Layout& layout) {
    Layout axes = layout;
    std::erase_if(axes, [](const auto& axis) {
      return axis.second <= 1 || kind_of(axis.first) == Axis::kModel;
    });
    return axes;
  };
  return data(a) == data(b);
}

/// Returns how often the job took the sample of `known` that it took least.
std::int64_t least_of(const Counts& counts, const Counts& known) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const auto& [sample, count] : known) {
    const auto at = counts.find(sample);
    least = std::min(least, at == counts.end() ? 0 : at->second);
  }
  return least;
}

/// Returns the number of samples that are taken at least twice more often than some sample of
/// `known`. A job that passes over its data, in whatever order, has none, except for samples with
/// which a sampler pads its last batch.
std::int64_t repeated_early(const Counts& counts, const Counts& known) {
  const std::int64_t least = least_of(counts, known);
  return std::count_if(counts.begin(), counts.end(),
                       [least](const auto& entry) { return entry.second - 2 >= least; });
}

/// The samples of one life or of the uninterrupted run, step by step.
class Samples {
 public:
  explicit Samples(const LifeEvidence& life)
      : data_ranks(ranks_along(life.plan.layout, Axis::kData)), table_(life.ranks) {
    std::int64_t ranks = 0;
    for (const auto& [time, row] : table_.rows()) {
      ranks = std::max(ranks, std::count_if(row.begin(), row.end(), [](const WitnessStep* step) {
                         return step != nullptr && !step->samples.empty();
                       }));
      Counts& counts = steps_[time];
      for (const WitnessStep* step : row) {
        if (step == nullptr) continue;
        for (const auto sample : step->samples) ++counts[sample];
      }
    }
    if (ranks % data_ranks == 0) copies_ = std::max<std::int64_t>(ranks / data_ranks, 1);
    for (const auto& [time, counts] : steps_) {
      for (const auto& [sample, count] : counts) {
        if (count % copies_ != 0) copies_ = 1;
      }
    }
  }

  const std::map<StepTime, Counts>& steps() const { return steps_; }
  const StepTable& table() const { return table_; }
  std::int64_t copies() const { return copies_; }

  /// Counts a sample once if all ranks that work on the same samples report it.
  void merge_copies() {
    for (auto& [time, counts] : steps_) {
      for (auto& [sample, count] : counts) count /= copies_;
    }
    copies_ = 1;
  }

  /// Returns the samples of the step, as they were reported at that time or last; null if nobody
  /// trained the step.
  const Counts* at(const StepTime& time) const { return at_or_last(steps_, time); }

  /// The same, but nothing if nobody trained the step.
  Counts at_or_none(const StepTime& time) const {
    const Counts* counts = at(time);
    return counts == nullptr ? Counts() : *counts;
  }

  std::int64_t data_ranks;

 private:
  StepTable table_;
  std::map<StepTime, Counts> steps_;
  /// Number of ranks that report each sample, because they work on the same ones.
  std::int64_t copies_ = 1;
};

/// Compares one life after the other, and remembers which samples the job has taken so far.
class SampleJudge : judged::Finder {
 public:
  SampleJudge(const std::vector<LifeEvidence>& lives, const LifeEvidence& uninterrupted,
              Findings& findings)
      : Finder(findings, {.phase = "train", .stream = "samples"}),
        lives_(lives),
        uninterrupted_(uninterrupted) {}

  std::vector<std::string> judge() {
    for (life_ = 0; life_ < lives_.size(); ++life_) {
      if (!judge_life()) break;
    }
    return std::move(left_out_);
  }

 private:
  /// The samples of a life and of the uninterrupted run, in the same terms.
  struct Both {
    Samples here;
    Samples there;
  };

  /// What is known when a job is compared as a stream.
  struct Known {
    explicit Known(const Samples& there) {
      for (const auto& [time, counts] : there.steps()) add(counts, all);
      Counts taken;
      for (const auto& [time, counts] : there.steps()) {
        if (time.again > 0) continue;
        add(counts, taken);
        repeated = std::max(repeated, repeated_early(taken, all));
      }
    }
    Counts all;                 ///< all samples of the uninterrupted run
    std::int64_t repeated = 0;  ///< most samples that run takes again early
    Counts here = {};           ///< what the job took until now
  };

  Finding& find(std::int64_t step, const std::string& text, SourceLine line = SourceLine::here()) {
    Finding& finding = Finder::find(judged::kDataStreamSkip, text, line);
    finding.life = life_;
    finding.step = step;
    return finding;
  }
  void doubt(std::int64_t step, const std::string& text, SourceLine line = SourceLine::here()) {
    find(step, text, line).severity = Severity::kInconclusive;
  }

  /// Returns false after a finding: later differences follow from the first one.
  bool judge_life() {
    const LifeEvidence& life = lives_[life_];
    Both both{Samples(life), Samples(uninterrupted_)};
    if (life.plan.layout != uninterrupted_.plan.layout) {
      both.here.merge_copies();
      both.there.merge_copies();
    }
    if (!same_data(life.plan.layout, uninterrupted_.plan.layout)) as_stream_ = true;
    for (const auto& [time, here] : both.here.steps()) {
      const Counts* there = both.there.at(time);
      const Counts nothing;
      if (here.empty() != (there == nullptr || there->empty())) {
        if (as_stream_ && !here.empty()) return judge_stream(both, time);
        doubt(time.step, "the samples of step " + std::to_string(time.step) +
                             " are reported only in " +
                             (here.empty() ? "the uninterrupted run" : life_name(life_)));
        return false;
      }
      if (there == nullptr) there = &nothing;
      if (here != *there) {
        return as_stream_ ? judge_stream(both, time) : judge_difference(both, time, here, *there);
      }
      take(time.step, here);
    }
    return true;
  }

  /// Remembers the samples of a step. Training it again undoes it and all later steps.
  void take(std::int64_t step, const Counts& counts) {
    taken_.erase(taken_.lower_bound(step), taken_.end());
    taken_[step] = counts;
  }

  /// Returns the last step before `step` in which the job took the sample.
  std::optional<std::int64_t> taken_before(std::int64_t step, std::int64_t sample) const {
    for (auto at = taken_.lower_bound(step); at != taken_.begin();) {
      if ((--at)->second.contains(sample)) return at->first;
    }
    return std::nullopt;
  }

  /// Returns the text for a sample that is taken again too early: the uninterrupted run took it
  /// more recently than it will take it again. Empty if there is none.
  std::string taken_again(const Both& both, std::int64_t step, const Counts& more) const {
    for (const auto& [sample, count] : more) {
      const auto before = taken_before(step, sample);
      if (!before) continue;
      const auto& steps = both.there.steps();
      const auto next =
          std::find_if(steps.upper_bound({step, SIZE_MAX}), steps.end(),
                       [wanted = sample](const auto& at) { return at.second.contains(wanted); });
      if (next != steps.end() && next->first.step - step < step - *before) continue;
      return "sample " + std::to_string(sample) + " is taken in step " + std::to_string(*before) +
             " and again in step " + std::to_string(step) +
             "; the uninterrupted run does not take it again there";
    }
    return "";
  }

  bool judge_difference(const Both& both, const StepTime& time, const Counts& here,
                        const Counts& there) {
    if (judge_unknown_axis(time.step, here, there)) return false;
    const std::string step = "step " + std::to_string(time.step);
    const Counts more = surplus_of(here, there);
    const Counts fewer = surplus_of(there, here);
    const auto often = std::find_if(more.begin(), more.end(),
                                    [&](const auto& entry) { return here.at(entry.first) > 1; });
    std::string text = taken_again(both, time.step, more);
    if (often != more.end()) {
      const auto at = there.find(often->first);
      text = "sample " + std::to_string(often->first) + " is taken " +
             std::to_string(here.at(often->first)) + " times in " + step +
             "; in the uninterrupted run: " + std::to_string(at == there.end() ? 0 : at->second);
    } else if (text.empty() && !fewer.empty()) {
      text = "sample " + std::to_string(fewer.begin()->first) + " is left out of " + step +
             "; the uninterrupted run takes it there";
    } else if (text.empty()) {
      text = "sample " + std::to_string(more.begin()->first) + " is taken in " + step +
             "; the uninterrupted run does not take it there";
    }
    const auto row = both.here.table().rows().find(time);
    const bool untouched = life_ == 0 && before_state(row->second, 0);
    Finding& finding = find(time.step, text);
    finding.untouched = untouched;
    finding.with(samples_text(there), samples_text(here));
    return false;
  }

  /// Reports that the runs take each sample another number of times, if that may only mean that
  /// the ranks along an axis of unknown name report the same samples.
  bool judge_unknown_axis(std::int64_t step, const Counts& here, const Counts& there) {
    const auto size = [](const LifeEvidence& life) {
      return ranks_along(life.plan.layout, Axis::kUnknown);
    };
    if (size(lives_[life_]) == size(uninterrupted_)) return false;
    const std::int64_t all_here = total_of(here);
    const std::int64_t all_there = total_of(there);
    const bool same_share = std::equal(
        here.begin(), here.end(), there.begin(), there.end(), [&](const auto& a, const auto& b) {
          return a.first == b.first && a.second * all_there == b.second * all_here;
        });
    if (!same_share) return false;
    doubt(step, "in step " + std::to_string(step) + " each sample is reported " +
                    std::to_string(all_here) + " times for " + std::to_string(all_there) +
                    " in the uninterrupted run; name the axes of data parallelism dp, so that it "
                    "is known which ranks take the same samples");
    return true;
  }

  // --- another number of data-parallel ranks -----------------------------------------------------

  /// Judges the rest of a life whose steps need not take what those of the uninterrupted run take,
  /// because it has, or an earlier life had, other data-parallel ranks. All that the job took until
  /// then is compared with what the uninterrupted run took until it had as many samples.
  bool judge_stream(const Both& both, const StepTime& from) {
    if (judge_unknown_axis(from.step, both.here.steps().at(from), both.there.at_or_none(from))) {
      return false;
    }
    if (judge_shift(both, from)) return false;
    Findings doubts;
    Known known(both.there);
    Counts least;  // what the uninterrupted run takes by the last step with at most as many samples
    auto next = both.there.steps().begin();
    for (auto at = both.here.steps().find(from); at != both.here.steps().end(); ++at) {
      take(at->first.step, at->second);
      if (at == both.here.steps().find(from) || at->first.again > 0) {
        known.here.clear();
        least.clear();
        next = both.there.steps().begin();
        for (const auto& [step, counts] : taken_) add(counts, known.here);
      } else {
        add(at->second, known.here);
      }
      const std::int64_t count = total_of(known.here);
      for (; next != both.there.steps().end(); ++next) {
        if (next->first.again > 0) continue;
        if (total_of(least) + total_of(next->second) > count) break;
        add(next->second, least);
      }
      const Counts missing = surplus_of(least, known.here);
      Counts extra;
      if (next != both.there.steps().end()) {
        Counts most = least;
        add(next->second, most);
        extra = surplus_of(known.here, most);
      }
      if (missing.empty() && extra.empty()) continue;
      if (judge_other_order(both, at->first.step, known)) return false;
      if (doubts.empty()) doubt_order(at->first.step, missing.empty() ? extra : missing, doubts);
    }
    if (!doubts.empty()) {
      findings_.push_back(doubts.front());
      return false;
    }
    left_out_.push_back("samples of " + life_name(life_) +
                        ": its steps need not take the same samples as those of the uninterrupted "
                        "run, so the samples were compared as one stream up to the end of that "
                        "run, and the first loss was not checked");
    return true;
  }

  /// Reports that the step takes what the uninterrupted run takes in another step: the samples are
  /// in the same order, and the position in them is wrong.
  bool judge_shift(const Both& both, const StepTime& time) {
    const Counts& here = both.here.steps().at(time);
    const Counts* there = both.there.at(time);
    if (there == nullptr || there->empty() || total_of(here) != total_of(*there)) return false;
    if (!comes_alone(both) || here.size() < 2) return false;
    const auto& steps = both.there.steps();
    const auto other = std::find_if(steps.begin(), steps.end(), [&](const auto& at) {
      return at.first.step != time.step && at.second == here;
    });
    if (other == steps.end()) return false;
    Finding& finding =
        find(time.step, "sample " + std::to_string(there->begin()->first) +
                            " is left out of step " + std::to_string(time.step) +
                            ", which takes what the uninterrupted run takes in step " +
                            std::to_string(other->first.step));
    finding.with(samples_text(*there), samples_text(here));
    return true;
  }
  /// True if this is the first life that is compared as a stream, so that it must begin where the
  /// uninterrupted run is.
  bool comes_alone(const Both& both) const {
    const std::int64_t first = both.here.steps().begin()->first.step;
    Counts here;
    Counts there;
    for (auto at = taken_.begin(); at != taken_.lower_bound(first); ++at) add(at->second, here);
    for (const auto& [time, counts] : both.there.steps()) {
      if (time.step < first && time.again == 0) add(counts, there);
    }
    return here == there;
  }

  /// Judges a job that took other samples than the uninterrupted run until then. Another order is
  /// no failure. Taking samples again before the others were taken is one, unless the uninterrupted
  /// run does so, too. A sampler may pad each epoch. Returns true if it found a failure.
  bool judge_other_order(const Both& both, std::int64_t step, const Known& known) {
    const Counts& here = known.here;
    std::int64_t padding = std::max(both.here.data_ranks, both.there.data_ranks) - 1;
    padding = std::max(padding * (least_of(here, known.all) + 1), known.repeated);
    if (repeated_early(here, known.all) <= padding) return false;
    const auto often = std::max_element(
        here.begin(), here.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto before = taken_before(step, often->first);
    Finding& finding =
        find(step, "sample " + std::to_string(often->first) + " is taken " +
                       (before ? "in step " + std::to_string(*before) + " and " : std::string()) +
                       "again by step " + std::to_string(step) +
                       ", before others of the uninterrupted run are taken");
    finding.with(samples_text(known.all), samples_text(here));
    return true;
  }

  void doubt_order(std::int64_t step, const Counts& unlike, Findings& doubts) const {
    doubts.push_back(
        {.code = judged::kDataStreamSkip,
         .text = "by step " + std::to_string(step) + " of " + life_name(life_) + ", sample " +
                 std::to_string(unlike.begin()->first) +
                 " is not taken as often as in the uninterrupted run; with other data-parallel "
                 "ranks this may be the sampler's padding or order, and can't be judged",
         .severity = Severity::kInconclusive,
         .life = life_,
         .step = step,
         .phase = "train",
         .stream = "samples"});
  }

  const std::vector<LifeEvidence>& lives_;
  const LifeEvidence& uninterrupted_;
  std::size_t life_ = 0;
  std::map<std::int64_t, Counts> taken_;  ///< by step
  bool as_stream_ = false;                ///< true once a life had other data-parallel ranks
  std::vector<std::string> left_out_;
};

}  // namespace

std::vector<std::string> judge_samples(const std::vector<LifeEvidence>& lives,
                                       const LifeEvidence& uninterrupted, Findings& findings) {
  return SampleJudge(lives, uninterrupted, findings).judge();
}

}  // namespace reprise::driver
