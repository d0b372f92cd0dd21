#include "driver/witness/course_judge.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <span>
#include <sstream>

#include "core/base/hash.hpp"
#include "driver/witness/step_table.hpp"

namespace reprise::driver {
namespace {

constexpr const char* kUninterrupted = "the uninterrupted run";

std::string hex_text(double value) {
  std::ostringstream text;
  text << std::hexfloat << value;
  return text.str();
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Compares the metrics of a life with those of another run.
class MetricJudge : judged::Finder {
 public:
  MetricJudge(std::size_t number, const LifeEvidence& life, const CourseReference& reference,
              Findings& findings)
      : Finder(findings, {.text = life_name(number), .life = number, .phase = "train"}),
        ranks_(life.ranks),
        reference_(reference),
        here_(life.ranks),
        there_(reference.life.ranks),
        loads_(loaded_by(life) ? 1 : 0) {}

  void judge(const char* metric) {
    judge_ranks_alike(metric);
    judge_against(metric);
  }

 private:
  Finding& find(FindingCode code, const StepTime& time, const char* metric, const std::string& text,
                SourceLine line = SourceLine::here()) {
    Finding& finding = Finder::find(
        code, ", step " + std::to_string(time.step) + ": the " + metric + " is " + text, line);
    finding.step = time.step;
    return finding;
  }

  /// Requires that the ranks report the same metrics, because each metric describes the whole job.
  void judge_ranks_alike(const char* metric) {
    for (const auto& [time, row] : here_.rows()) {
      const auto first = metric_in(row, metric);
      for (std::size_t rank = 0; first && rank < row.size(); ++rank) {
        if (row[rank] == nullptr || !row[rank]->metrics.contains(metric)) continue;
        const double own = row[rank]->metrics.at(metric);
        if (same_bits(own, *first)) continue;
        find(judged::kTrajectoryDivergence, time, metric,
             hex_text(own) + ", and " + hex_text(*first) + " on another rank")
            .rank = rank_numbered(ranks_[rank].rank);
        return;
      }
    }
  }

  /// Compares the metric of each step with that of the reference. Reports the first difference.
  void judge_against(const char* metric) {
    for (const auto& [time, row] : here_.rows()) {
      const StepRow* other = there_.row(time);
      const auto here = metric_in(row, metric);
      const auto there = other == nullptr ? std::nullopt : metric_in(*other, metric);
      if (!here && !there) continue;
      if (here && there && same_bits(*here, *there)) continue;
      if (here && there) {
        Finding& finding =
            find(judged::kTrajectoryDivergence, time, metric,
                 hex_text(*here) + ", and " + hex_text(*there) + " in " + reference_.called);
        finding.with(hex_text(*there), hex_text(*here)).stream = metric;
        finding.untouched = reference_.same_start && before_state(row, loads_);
      } else {
        Finding& finding =
            find(judged::kOracleVacuous, time, metric,
                 "reported only in " + (here ? std::string("this life") : reference_.called) +
                     ", so there is nothing to compare it with");
        finding.severity = Severity::kInconclusive;
        finding.stream = metric;
      }
      return;
    }
  }

  const std::vector<RankWitness>& ranks_;
  const CourseReference& reference_;
  StepTable here_;
  StepTable there_;
  std::size_t loads_;  ///< number of states that the life describes before its first own step
};

void judge_metrics(std::span<const char* const> metrics, std::size_t number,
                   const LifeEvidence& life, const CourseReference& reference, Findings& findings) {
  Findings found;
  MetricJudge judge(number, life, reference, found);
  for (const char* metric : metrics) judge.judge(metric);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.step < b.step; });
  findings.append(found);
}

/// Compares the states at the end of two runs, if both ended at the same step.
class EndJudge : judged::Finder {
 public:
  EndJudge(std::size_t number, const LifeEvidence& life, const CourseReference& reference,
           Findings& findings)
      : Finder(findings,
               {.text = life_name(number), .life = number, .phase = "end", .stream = "end"}),
        life_(life),
        reference_(reference) {}

  void judge() {
    const auto here = end_of(life_);
    const auto there = end_of(reference_.life);
    if (!here || !there || here->step != there->step) {
      if (reference_.same_end) doubt_ends(here, there);
      return;
    }
    place_.step = here->step;
    for (const auto& [key, tensor] : here->tensors) judge_tensor(key, tensor, *there);
    for (const auto& [key, tensor] : there->tensors) {
      if (here->tensors.contains(key)) continue;
      find_lost(key, tensor.per_rank, "digest " + hex(tensor.digest));
    }
    for (const auto& [name, object] : here->objects) judge_object(name, object, *there);
    for (const auto& [name, object] : there->objects) {
      if (here->objects.contains(name)) continue;
      find_lost(shown(name), bound(name, object), shown_content(object));
    }
  }

 private:
  using ObjectName = std::pair<std::string, std::string>;

  std::optional<WholeState> end_of(const LifeEvidence& life) const {
    Findings ignored;
    return merge_states(life.ranks, StateMoment::kEnd, 0, *place_.life, ignored);
  }

  static std::string shown(const ObjectName& name) {
    return name.second.empty() ? name.first : name.first + " " + name.second;
  }
  /// True if the object belongs to a place in the layout.
  static bool bound(const ObjectName& name, const WholeObject& object) {
    return object.per_rank || !name.second.empty();
  }
  bool other_layout() const { return life_.plan.layout != reference_.life.plan.layout; }

  void doubt_ends(const std::optional<WholeState>& here, const std::optional<WholeState>& there) {
    const auto text = [](const std::optional<WholeState>& end) {
      return end ? "at step " + std::to_string(end->step) : std::string("nowhere");
    };
    doubt(" ends " + text(here) + ", and " + reference_.called + " ends " + text(there) +
          ", so their ends can't be compared")
        .stream = {};
  }

  Finding& find(FindingCode code, const std::string& key, const std::string& text,
                SourceLine line = SourceLine::here()) {
    return Finder::find(code, key, ", at the end: " + key + " " + text, line);
  }

  void find_lost(const std::string& key, bool per_rank, const std::string& there,
                 SourceLine line = SourceLine::here()) {
    if (per_rank && other_layout()) return;
    find(judged::kLostObject, key, "is held by no rank, but " + reference_.called + " holds it",
         line)
        .with(there, kHeldByNone);
  }
  void find_extra(const std::string& key, bool per_rank, SourceLine line = SourceLine::here()) {
    if (per_rank && other_layout()) return;
    Finding& finding = find(
        judged::kOracleVacuous, key,
        "is held, but " + reference_.called + " lacks it, so there is nothing to compare it with",
        line);
    finding.severity = Severity::kInconclusive;
    finding.stream = {};
  }

  void judge_tensor(const std::string& key, const WholeTensor& tensor, const WholeState& there) {
    const auto other = there.tensors.find(key);
    if (other == there.tensors.end()) return find_extra(key, tensor.per_rank);
    if (tensor.dtype != other->second.dtype) {
      find(Code::kDtypeDrift, key, "has a different dtype than in " + reference_.called)
          .with(std::string(name_of(other->second.dtype)), std::string(name_of(tensor.dtype)));
    } else if (!(tensor.shape == other->second.shape)) {
      find(Code::kShapeDrift, key, "has a different shape than in " + reference_.called)
          .with(to_string(other->second.shape), to_string(tensor.shape));
    } else if (tensor.digest != other->second.digest) {
      find_other_content(key, "digest " + hex(other->second.digest),
                         "digest " + hex(tensor.digest));
    }
  }

  void judge_object(const ObjectName& name, const WholeObject& object, const WholeState& there) {
    const auto other = there.objects.find(name);
    if (other == there.objects.end()) {
      if (!reference_.may_hold_more) find_extra(shown(name), bound(name, object));
      return;
    }
    const auto lost = rank_that_lost(other->second, object);
    if (lost && !other_layout()) {
      find(judged::kLostObject, shown(name),
           "is not held by rank " + std::to_string(*lost) + ", but in " + reference_.called +
               " it is")
          .with(shown_content(other->second), "nothing on that rank")
          .rank = rank_numbered(*lost);
      return;
    }
    if (!object.digest || !other->second.digest || object.digest == other->second.digest) return;
    if (bound(name, object) && other_layout()) return;
    find_other_content(shown(name), shown_content(other->second), shown_content(object));
  }

  void find_other_content(const std::string& key, const std::string& there, const std::string& here,
                          SourceLine line = SourceLine::here()) {
    find(judged::kTrajectoryDivergence, key, "differs from " + reference_.called, line)
        .with(there, here);
  }

  const LifeEvidence& life_;
  const CourseReference& reference_;
};

/// Returns the samples that any rank took when the step was trained first.
std::set<std::int64_t> samples_at(const StepTable& table, std::int64_t step) {
  std::set<std::int64_t> samples;
  const StepRow* row = table.row({step, 0});
  if (row == nullptr) return samples;
  for (const WitnessStep* told : *row) {
    if (told != nullptr) samples.insert(told->samples.begin(), told->samples.end());
  }
  return samples;
}

}  // namespace

void judge_course(std::size_t number, const LifeEvidence& life, const CourseReference& reference,
                  Findings& findings) {
  judge_metrics(kWitnessMetrics, number, life, reference, findings);
  EndJudge(number, life, reference, findings).judge();
}

void judge_finite_losses(std::size_t number, const LifeEvidence& life, Findings& findings) {
  const StepTable table(life.ranks);
  const auto is_finite = [](const auto& entry) {
    const auto loss = metric_in(entry.second, "loss");
    return !loss || std::isfinite(*loss);
  };
  const auto& rows = table.rows();
  if (rows.empty() || std::any_of(rows.begin(), rows.end(), is_finite)) return;
  findings.push_back(
      {.code = judged::kOracleVacuous,
       .text = life_name(number) + ": no loss is a finite number, so equal losses prove nothing",
       .severity = Severity::kInconclusive,
       .life = number,
       .step = rows.begin()->first.step,
       .phase = "train"});
}

void judge_schedule(std::size_t number, const LifeEvidence& life, const LifeEvidence& uninterrupted,
                    Findings& findings) {
  constexpr std::array kSchedule = {"lr"};
  judge_metrics(kSchedule, number, life, {.life = uninterrupted, .called = kUninterrupted},
                findings);
}

void judge_first_loss(std::size_t number, const LifeEvidence& life,
                      const LifeEvidence& uninterrupted, double within, Findings& findings) {
  const auto steps = steps_of(life.ranks);
  if (!loaded_by(life) || steps.empty()) return;
  const std::int64_t first = steps.front();
  const StepTable own(life.ranks);
  const StepTable other(uninterrupted.ranks);
  if (samples_at(own, first) != samples_at(other, first)) return;
  const auto here = own.metric(first, "loss");
  const auto there = other.metric(first, "loss");
  if (here && there && same_bits(*here, *there)) return;
  if (!here || !there || std::abs(*here - *there) <= within * std::abs(*there)) return;
  std::ostringstream text;
  text << life_name(number) << ", step " << first << ": the first loss after the load is " << *here
       << ", and " << *there << " in the uninterrupted run; 'loss_within' allows " << within;
  findings.push_back({.code = judged::kTrajectoryDivergence,
                      .text = text.str(),
                      .life = number,
                      .step = first,
                      .phase = "train",
                      .expected = hex_text(*there),
                      .found = hex_text(*here),
                      .stream = "loss"});
}

}  // namespace reprise::driver
