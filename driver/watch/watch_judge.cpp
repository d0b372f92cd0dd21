#include "driver/watch/watch_judge.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/base/print.hpp"
#include "driver/watch/course_judge.hpp"
#include "driver/watch/finding_book.hpp"
#include "driver/watch/layout_judge.hpp"
#include "driver/watch/life_ends.hpp"
#include "driver/watch/name_groups.hpp"
#include "driver/watch/repeat_judge.hpp"
#include "driver/watch/state_judge.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;

void append(std::vector<WatchFinding> more, std::vector<WatchFinding>& findings) {
  std::ranges::move(more, std::back_inserter(findings));
}

bool has(const std::vector<WatchFinding>& findings, Severity severity) {
  return std::ranges::any_of(
      findings, [severity](const WatchFinding& finding) { return finding.severity == severity; });
}

class WatchJudge {
 public:
  explicit WatchJudge(const WatchedLives& lives) : lives_(lives) {}

  WatchJudgement judge() {
    take_not_judged(lives_.uninterrupted);
    note_planned_end();
    for (const auto& life : lives_.resumed) take_not_judged(life);
    if (ended_well() && repeats()) {
      find_not_stored();
      for (std::size_t i = 1; i < lives_.resumed.size(); ++i) judge_resumed(i);
      append(std::move(failed_later_), findings());
      require_essentials();
    }
    conclude();
    return std::move(judgement_);
  }

 private:
  static constexpr std::size_t kKilled = 1;  ///< index among all lives of the first killed one

  const LifeRecording& a() const { return lives_.uninterrupted.recording; }
  std::vector<WatchFinding>& findings() { return judgement_.findings; }

  void note_planned_end() {
    if (planned_end(a()) == 0) return;
    judgement_.not_judged["what follows exit code " + std::to_string(planned_end(a()))] =
        "life A ended with it, as planned";
  }

  void take_not_judged(const WatchedLife& life) {
    for (const auto& [rank, recording] : life.recording.ranks) {
      judgement_.not_judged.insert(recording.not_judged.begin(), recording.not_judged.end());
    }
  }

  /// Judges how the lives ended, in their order. A life that was not as it should be says nothing
  /// of the next one.
  bool ended_well() {
    append(judge_control(lives_.uninterrupted), findings());
    if (!findings().empty()) return false;
    for (std::size_t i = 0; i < lives_.resumed.size(); ++i) {
      const bool last = i > 0 && i + 1 == lives_.resumed.size();
      auto ended = judge_end(lives_.resumed[i], i + kKilled,
                             last ? MeantTo::kEnd : MeantTo::kBeKilled, &a());
      // A life that resumed and failed later is compared all the same: that may tell why.
      const bool began = last && has(ended, Severity::kFail) && began_everywhere(i);
      append(std::move(ended), began ? failed_later_ : findings());
      if (!findings().empty()) return false;
    }
    if (lives_.resumed.size() < 2) {
      findings().push_back({.severity = Severity::kInconclusive,
                            .code = judged::kOracleVacuous,
                            .where = "lives",
                            .text = why_none_resumes()});
      return false;
    }
    return true;
  }

  /// Says why a driver ran life A alone.
  std::string why_none_resumes() const {
    std::int64_t saved = 0;
    for (const auto& [rank, recording] : a().ranks) {
      for (const auto& save : recording.saves) saved = std::max(saved, save.step);
    }
    if (lives_.kill || !lives_.resumed.empty()) return "no life resumes";
    if (lives_.kill_asynchronous && !saves_asynchronously(a())) {
      return "life A made no asynchronous save that a kill could meet; leave out --kill-in async";
    }
    const bool steps =
        std::ranges::any_of(a().ranks, [](const auto& rank) { return !rank.second.steps.empty(); });
    if (!steps) {
      return "no step was counted: an optimizer is seen if its class derives from "
             "torch.optim.Optimizer";
    }
    return (saved == 0 ? std::string("life A handed nothing to a save that is known")
                       : "life A saves only after its last step, " + std::to_string(saved)) +
           ": let it save earlier, or say with --kill after which step to kill it";
  }

  bool began_everywhere(std::size_t i) const {
    const auto& ranks = lives_.resumed[i].recording.ranks;
    return (tells_wholes(a()) || ranks.size() == a().ranks.size()) &&
           std::ranges::all_of(ranks, [](const auto& rank) { return !rank.second.held.empty(); });
  }

  /// Compares life A with the same steps of the killed life, and of the repeat if there is one.
  bool repeats() {
    std::vector<const LifeRecording*> others = {&lives_.resumed.front().recording};
    if (lives_.repeat) others.push_back(&lives_.repeat->recording);
    for (const auto* other : others) {
      Repetition found = compare_runs(a(), *other);
      if (found.broken) {
        findings().push_back(*found.broken);
        return false;
      }
      noise_.merge(found.noise);
      leaf_noise_.merge(found.leaf_noise);
      repeated_to_ = std::max(repeated_to_, found.steps);
    }
    for (const auto& name : noise_) {
      judgement_.not_judged[name] = "differs from run to run: it is not seeded, or measures";
    }
    return true;
  }

  /// Finds what was handed to a save of life A that is complete without it, each name once.
  void find_not_stored() {
    FindingBook book;
    for (const auto& [rank, recording] : a().ranks) {
      std::set<std::string> known;
      for (const auto& save : recording.not_stored) {
        for (const auto& name : save.names) {
          if (!known.insert(name).second) continue;
          book.add_name(static_cast<std::int32_t>(rank), name,
                        {.code = judged::kLostObject,
                         .text = "handed to the save after step " + std::to_string(save.step) +
                                 ", which is complete without it",
                         .step = save.step});
        }
      }
    }
    append(book.take(), findings());
  }

  void judge_resumed(std::size_t i) {
    const ResumedLife life{.uninterrupted = a(),
                           .killed = lives_.resumed[i - 1].recording,
                           .resumed = lives_.resumed[i].recording,
                           .noise = noise_,
                           .killed_from = from_,
                           .life = i + kKilled};
    const bool other_layout = tells_wholes(a()) && tells_wholes(life.resumed);
    const auto from = other_layout ? continues_whole_from(life) : continues_from(life);
    if (!from) {
      findings().push_back({.severity = Severity::kInconclusive,
                            .code = judged::kOracleVacuous,
                            .where = "life " + lives_.resumed[i].name,
                            .text = other_layout ? "holds no tensor that can be compared as a whole"
                                                 : "a rank recorded nothing of what it holds",
                            .life = life.life});
      return;
    }
    judgement_.continues_from = from;
    judgement_.newest_save = newest_save(life, *from);
    if (*from == 0) return judge_anew(life);
    std::vector<WatchFinding> found = judge_choice(life, *from);
    if (other_layout) {
      append(compare_layouts(life, *from, judgement_), found);
      return append(std::move(found), findings());
    }
    const CourseLimits limits{.from = *from,
                              .repeated_to = repeated_to_,
                              .to_the_end = i + 1 == lives_.resumed.size() && failed_later_.empty(),
                              .leaf_noise = leaf_noise_};
    StateFindings states = compare_states(life, *from, judgement_);
    CourseFindings course = compare_courses(life, limits, judgement_);
    settle_rounding(states, life, course);
    settle_effects(states, course);
    // A buffer may count what the first step took, before its forward: then the data are the cause.
    const auto buffers =
        std::stable_partition(states.findings.begin(), states.findings.end(),
                              [](const auto& f) { return !f.names.front().starts_with("buffer"); });
    std::move(states.findings.begin(), buffers, std::back_inserter(found));
    append(std::move(course.data), found);
    std::move(buffers, states.findings.end(), std::back_inserter(found));
    append(std::move(states.without_effect), found);
    append(std::move(course.rates), found);
    append(std::move(course.losses), found);
    append(std::move(course.lengths), found);
    if (has(found, Severity::kFail)) fold(course.saves);
    append(std::move(course.saves), found);
    const bool alike = !has(found, Severity::kFail) && !has(found, Severity::kInconclusive);
    if (alike && limits.to_the_end) append(ends(life, *from), found);
    settle_explanations(std::move(states.explanations), found);
    append(std::move(found), findings());
    from_ = *from;
  }

  /// Judges whether it continues from the newest save, or from the one that the user named.
  std::vector<WatchFinding> judge_choice(const ResumedLife& life, std::int64_t from) const {
    const auto newest = judgement_.newest_save;
    if (!newest || *newest <= from || !saved_at(life, from)) return {};
    const bool chosen = names_save(life, lives_.resume_words, from, *newest);
    return {{.severity = chosen ? Severity::kNote : Severity::kFail,
             .code = judged::kStaleBytes,
             .where = "step " + std::to_string(from),
             .text = (chosen ? "continues from it, as --resume-args says" : "continues from it") +
                     std::string(", though what was saved after step ") + std::to_string(*newest) +
                     " is complete",
             .life = life.life,
             .step = from}};
  }

  /// All came back, and sums of a later step were added in another order: that is no proof of
  /// anything. The first step of a process is special, for instance, where
  /// DistributedDataParallel arranges its buckets anew after it.
  static void settle_rounding(const StateFindings& states, const ResumedLife& life,
                              CourseFindings& course) {
    const bool other = has(states.findings, Severity::kFail) || !course.data.empty() ||
                       !course.rates.empty() || !course.lengths.empty();
    if (other || !course.rounding) return;
    WatchFinding first = course.losses.front();
    first.severity = Severity::kInconclusive;
    first.code = judged::kNotDeterministic;
    first.text =
        "all that was compared came back, and the first step's loss is equal; then " +
        first.text.substr(0, first.text.find(',')) +
        ": as if sums were made in another order, which DistributedDataParallel does after the "
        "first step of a process (find_unused_parameters=True avoids it)";
    first.life = life.life;
    course.losses = {std::move(first)};
    course.saves.clear();
  }

  /// What only the steps can show decides only if they differ.
  static void settle_effects(StateFindings& states, const CourseFindings& course) {
    const bool effect = has(course.data, Severity::kFail) || has(course.losses, Severity::kFail) ||
                        has(course.saves, Severity::kFail);
    for (auto& quiet : states.without_effect) {
      quiet.severity = effect ? Severity::kFail : Severity::kNote;
      if (!effect) quiet.text += ": no effect in the steps compared";
    }
  }

  /// Makes one note of what later saves have, because it follows from what is wrong already.
  static void fold(std::vector<WatchFinding>& saves) {
    if (saves.empty()) return;
    std::set<std::string> names;
    std::set<std::int64_t> steps;
    WatchFinding all{.severity = Severity::kNote,
                     .code = judged::kContentDiffers,
                     .where = "later saves",
                     .life = saves.front().life,
                     .step = saves.front().step};
    for (const auto& save : saves) {
      names.insert(save.names.begin(), save.names.end());
      steps.insert(save.step.value_or(0));
      all.ranks.insert(save.ranks.begin(), save.ranks.end());
    }
    all.text = "differ, too: " + counted(names.size(), "name") + ", after " +
               (steps.size() == 1 ? "step " : "steps ") + join(steps, ", ");
    saves = {std::move(all)};
  }

  /// Tells what explains a difference; if there is none, it was not judged.
  void settle_explanations(std::vector<WatchFinding> explanations,
                           std::vector<WatchFinding>& found) {
    const bool wrong = has(found, Severity::kFail) || has(found, Severity::kInconclusive);
    for (auto& explanation : explanations) {
      for (const auto& name : explanation.names) {
        if (!wrong) {
          judgement_.not_judged[name] = "differs, without effect in the steps compared";
        }
      }
      if (wrong) found.push_back(std::move(explanation));
    }
  }

  std::vector<WatchFinding> ends(const ResumedLife& life, std::int64_t from) {
    auto found = compare_ends(life, from);
    for (auto& finding : found) {
      if (finding.step <= repeated_to_) continue;
      judgement_.wants_repeat = true;
      finding.severity = Severity::kInconclusive;
      finding.text += ", which only one run shows";
    }
    return found;
  }

  /// Nothing of a later step came back.
  void judge_anew(const ResumedLife& life) {
    std::set<std::string> saved;
    for (const auto& [rank, recording] : life.killed.ranks) {
      for (const auto& save : recording.saves) saved.insert(save.path);
    }
    bool loaded = false;
    for (const auto& [rank, recording] : life.resumed.ranks) {
      for (const auto& load : recording.loads) {
        loaded = loaded || (load.error.empty() && saved.contains(load.path));
      }
    }
    const bool told = !lives_.resume_words.empty();
    const std::string anew = "as in a new process";
    const std::string text = loaded ? ", although a save was loaded"
                             : !complete_before(life)
                                 ? ": nothing was saved completely before the kill"
                             : told ? ": nothing that was saved was loaded"
                                    : ": say with --resume-args what makes the command resume";
    const bool blamed = loaded || (told && complete_before(life));
    findings().push_back({.severity = blamed ? Severity::kFail : Severity::kInconclusive,
                          .code = judged::kLostObject,
                          .where = "everything",
                          .text = anew + text,
                          .life = life.life,
                          .step = 0});
  }

  /// True if some life before this one left a complete save.
  bool complete_before(const ResumedLife& life) const {
    for (std::size_t i = 0; i + kKilled < life.life; ++i) {
      for (const auto& rank : lives_.resumed[i].recording.ranks) {
        const RankRecording& own = rank.second;
        const auto whole = [&own](const Transfer& save) {
          return save.complete && !own.was_cut_at(save);
        };
        if (std::ranges::any_of(own.saves, whole)) return true;
      }
    }
    return false;
  }

  /// True if some step of life A had no forward that the hook could see.
  bool made_unseen() const {
    return std::ranges::any_of(a().ranks, [](const auto& rank) {
      return std::ranges::any_of(rank.second.steps,
                                 [](const auto& step) { return step.second.unseen; });
    });
  }

  /// A pass needs weights, state of an optimizer, data and losses that were compared.
  void require_essentials() {
    if (has(findings(), Severity::kFail) || has(findings(), Severity::kInconclusive)) return;
    const auto any = [this](const char* kind) {
      const std::string prefix = std::string(kind) + ".";
      const auto begins = [&](const std::string& name) { return name.starts_with(prefix); };
      return std::ranges::any_of(judgement_.counts.tensors, begins) ||
             std::ranges::any_of(judgement_.counts.values, begins);
    };
    std::vector<std::string> lacking;
    const auto is_weight = [](const std::string& name) { return name.ends_with(".param"); };
    if (!any("param") && std::ranges::none_of(judgement_.counts.tensors, is_weight))
      lacking.emplace_back("weights");
    if (!any("optim") && !any("group")) lacking.emplace_back("an optimizer");
    if (judgement_.counts.data_steps.empty()) {
      lacking.emplace_back(made_unseen()
                               ? "data (no forward of a module in training mode was seen; "
                                 "a model after model.eval() is none)"
                               : "data");
    }
    const bool whole = tells_wholes(a());  // losses differ between layouts
    if (!whole && judgement_.counts.loss_steps.empty()) lacking.emplace_back("finite losses");
    for (const auto& [rank, recording] : lives_.resumed.back().recording.ranks) {
      const auto at = judgement_.ranks.find(static_cast<std::int32_t>(rank));
      if (at == judgement_.ranks.end() || at->second.compared == 0) {
        lacking.push_back("anything of rank " + std::to_string(rank));
      }
    }
    if (lacking.empty()) return;
    findings().push_back({.severity = Severity::kInconclusive,
                          .code = judged::kOracleVacuous,
                          .where = "judged",
                          .text = "too little was seen to judge: no " + join(lacking, ", no ")});
  }

  /// Puts what decides first, and sets the verdict.
  void conclude() {
    // What only one run shows follows from what two runs show to be wrong.
    if (has(findings(), Severity::kFail)) {
      std::erase_if(findings(), [](const WatchFinding& finding) {
        return finding.severity == Severity::kInconclusive;
      });
    }
    std::ranges::stable_sort(findings(), {}, &WatchFinding::severity);
    for (const auto& finding : findings()) {
      if (finding.severity != Severity::kFail) continue;
      for (const auto rank : finding.ranks) {
        auto& result = judgement_.ranks[rank];
        result.rank = rank;
        result.bit_mismatches += std::max<std::size_t>(finding.names.size(), 1);
        result.max_delta = std::numeric_limits<double>::quiet_NaN();
      }
    }
    judgement_.verdict = has(findings(), Severity::kFail)           ? Verdict::kFail
                         : has(findings(), Severity::kInconclusive) ? Verdict::kInconclusive
                                                                    : Verdict::kPass;
    if (judgement_.verdict != Verdict::kInconclusive || lives_.repeat) {
      judgement_.wants_repeat = false;
    }
  }

  const WatchedLives& lives_;
  WatchJudgement judgement_;
  std::vector<WatchFinding> failed_later_;  ///< how the last life ended, if it began and failed
  std::set<std::string> noise_;
  std::set<std::string> leaf_noise_;
  std::int64_t repeated_to_ = 0;
  std::int64_t from_ = 0;  ///< step of life A from which the last judged life continued
};

}  // namespace

std::vector<WatchFinding> judge_control(const WatchedLife& life) {
  return judge_end(life, 0, MeantTo::kEnd, nullptr);
}

WatchJudgement judge_watch(const WatchedLives& lives) { return WatchJudge(lives).judge(); }

}  // namespace reprise::driver
