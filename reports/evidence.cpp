#include "reports/evidence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "core/base/print.hpp"
#include "properties/finding_code.hpp"
#include "reports/contradiction.hpp"

namespace reprise::reports {
namespace {

constexpr double kSecondsMax = 10 * 366 * 86400.0;  ///< ten years

constexpr const char* kRepair = "repair what it found, and run the lane again";
constexpr const char* kWriteAgain = "the report contradicts itself: write it again with a run";

/// Returns the first key that is not in `excused`; empty if there is none.
std::string unexcused(const std::vector<std::string>& keys,
                      const std::vector<std::string>& excused) {
  for (const auto& key : keys) {
    if (std::find(excused.begin(), excused.end(), key) == excused.end()) return key;
  }
  return "";
}

/// True if the rank compared nothing. On the lane `files`, an object is enough, because a
/// checkpoint may have no tensors. On other lanes, at least one element has to be compared.
bool compared_nothing(const RankResult& rank, ReportLane lane) {
  return lane == ReportLane::kFiles ? rank.compared == 0 : rank.elements == 0;
}

/// True if the scenario ended normally. A scenario with an expected refusal ends with an error, and
/// its ranks may lack keys.
bool returned(const ScenarioResult& result) {
  return result.lives.empty() || result.lives.back().exit_code == 0;
}

/// True if a planned fault ended the last life before that life could compare anything.
bool may_have_nothing(const ScenarioResult& result) {
  return !result.lives.empty() && result.lives.back().outcome == LifeOutcome::kCutShort;
}

/// Returns what is wrong with the rank's counts; empty if they support a pass.
std::string flaw_in_counts(const RankResult& rank) {
  if (!rank.owns && (rank.elements != 0 || rank.compared != 0)) {
    return "owns nothing but compared " + counted(rank.elements, "element");
  }
  if (rank.elements != 0 && rank.compared == 0) {
    return "compared " + counted(rank.elements, "element") + " but no tensor";
  }
  if (rank.bit_mismatches != 0)
    return "has " + counted(rank.bit_mismatches, "element") + " with different bits";
  if (!(rank.max_delta == 0)) {
    std::ostringstream delta;
    delta << rank.max_delta;
    return "has max_delta " + delta.str();
  }
  return rank.metrics_finite ? "" : "has metrics that are not finite";
}

/// Returns a key that is missing on one side; empty if there is none.
std::string flaw_in_cover(const RankResult& rank) {
  const std::pair<const std::vector<std::string>&, const char*> lists[] = {
      {rank.not_requested, "did not request "},
      {rank.not_stored, "requested keys that are not in the checkpoint: "},
      {rank.shape_mismatches, "found a different shape for "},
      {rank.dtype_mismatches, "found a different dtype for "}};
  for (const auto& [keys, words] : lists) {
    const std::string key = unexcused(keys, rank.excused);
    if (!key.empty()) return words + key;
  }
  return "";
}

/// Returns the flaw of the first rank that has one, and the number of other ranks with flaws.
std::string flaw_in_ranks(const ScenarioResult& result, ReportLane lane) {
  std::string first;
  std::uint64_t others = 0;
  for (const auto& rank : result.ranks) {
    std::string flaw = flaw_in_counts(rank);
    const bool vacuous = rank.owns && compared_nothing(rank, lane) && !may_have_nothing(result);
    if (flaw.empty() && vacuous) flaw = "owns state but compared nothing";
    if (flaw.empty() && returned(result)) flaw = flaw_in_cover(rank);
    if (flaw.empty()) continue;
    if (!first.empty()) ++others;
    if (first.empty()) first = "rank " + std::to_string(rank.rank) + " " + flaw;
  }
  return others == 0 ? first : first + " (and " + counted(others, "further rank") + ")";
}

std::string flaw_in_rank_list(const ScenarioResult& result, ReportLane lane) {
  std::set<std::int32_t> seen;
  const Compared compared = compared_of(result);
  if (result.ranks.empty()) return "has no evidence from any rank";
  for (const auto& rank : result.ranks) {
    if (!seen.insert(rank.rank).second) return "lists rank " + std::to_string(rank.rank) + " twice";
    const bool outside = rank.rank < 0 || (result.world > 0 && rank.rank >= result.world);
    if (outside) {
      return "lists rank " + std::to_string(rank.rank) + " of a world of " +
             std::to_string(result.world);
    }
  }
  // The ranks are distinct and not negative. Therefore the list is complete if the highest rank is
  // one less than the number of ranks.
  if (static_cast<std::size_t>(*seen.rbegin()) + 1 != seen.size()) {
    return "lists rank " + std::to_string(*seen.rbegin()) + ", but not all before it";
  }
  const RankResult all{.compared = compared.leaves, .elements = compared.elements};
  if (!may_have_nothing(result) && compared_nothing(all, lane)) {
    return "compared nothing on any rank";
  }
  return "";
}

bool same_metric(double own, const std::optional<double>& other) { return !other || own == *other; }

std::string flaw_in_course(const ScenarioResult& result) {
  for (const auto& point : result.trajectory) {
    const bool finite =
        std::isfinite(point.loss) && std::isfinite(point.lr) && std::isfinite(point.loss_scale);
    if (!finite) return "has metrics that are not finite at step " + std::to_string(point.step);
    if (!same_metric(point.loss, point.uninterrupted_loss) ||
        !same_metric(point.lr, point.uninterrupted_lr) ||
        !same_metric(point.loss_scale, point.uninterrupted_loss_scale)) {
      return "diverged from the uninterrupted run at step " + std::to_string(point.step);
    }
  }
  for (const auto& fault : result.faults) {
    if (fault.must_fire && !fault.fired) {
      return "planned a fault '" + fault.kind + "' on rank " + std::to_string(fault.rank) +
             " that never fired";
    }
  }
  if (result.first_difference) return "names a first difference: " + result.first_difference->key;
  return "";
}

/// Returns what is wrong with the memory use; empty if nothing exceeded its declared bound.
std::string flaw_in_memory(const ScenarioResult& result) {
  if (!result.bound_bytes) return "";
  const auto& peak = result.peak_bytes;
  const auto& bound = *result.bound_bytes;
  const auto over = [](const std::string& what, std::uint64_t held, std::uint64_t declared) {
    return "held " + counted(held, "byte") + " in a " + what + ", and declared " +
           std::to_string(declared);
  };
  if (std::max(peak.snapshot, peak.stage) > bound.stage) {
    return over("save", std::max(peak.snapshot, peak.stage), bound.stage);
  }
  if (bound.empty > 0 && peak.empty > bound.empty) {
    return over("save or load by a rank without any part of a tensor", peak.empty, bound.empty);
  }
  return peak.load > bound.load ? over("load", peak.load, bound.load) : "";
}

std::string flaw_in_size(const ScenarioResult& result) {
  for (const auto& rank : result.ranks) {
    if (rank.elements <= kCountMax && rank.compared <= kCountMax) continue;
    return "says that rank " + std::to_string(rank.rank) + " compared " +
           counted(std::max(rank.elements, rank.compared), "element") + ", which no run does";
  }
  return "";
}

/// Returns what contradicts a pass: a code, a reason, a crash or a failed life; empty if nothing
/// does.
std::string flaw_in_words(const ScenarioResult& result) {
  if (result.crashed) return "says that the program crashed in it";
  if (!result.code.empty()) return "has the code " + result.code;
  if (!result.reason.empty()) return "gives a reason: " + result.reason;
  for (const auto& life : result.lives) {
    if (life.outcome == LifeOutcome::kFailed) return "has a life that failed: " + life.code;
  }
  return "";
}

/// Returns what is wrong with the tries before the one that passed; empty if nothing is. A pass
/// after a retry is one only if a deadline ended the first try, and only programs of others have
/// deadlines that are real time.
std::string flaw_in_tries(const ScenarioResult& result, ReportLane lane) {
  if (result.earlier_tries.empty()) return "";
  if (lane != ReportLane::kProgram) return "was retried, which only the lane program does";
  double seconds = 0;
  for (const auto& earlier : result.earlier_tries) {
    if (earlier.code.empty()) return "was retried without a code for the first try";
    seconds += earlier.seconds;
  }
  const bool fits = std::isfinite(seconds) && seconds >= 0 && seconds <= result.seconds;
  return fits ? "" : "took less time than its earlier tries";
}

/// Returns what is wrong with the scenario's entries; empty if they support a pass.
std::string flaw_in(const ScenarioResult& result, const Report& report) {
  const ReportLane lane = report.lane;
  for (const auto& flaw :
       {flaw_in_words(result), flaw_in_size(result), flaw_in_rank_list(result, lane),
        flaw_in_ranks(result, lane), flaw_in_course(result), flaw_in_memory(result),
        flaw_in_tries(result, lane)}) {
    if (!flaw.empty()) return flaw;
  }
  if (lane == ReportLane::kFiles) return "";
  const std::string contradiction = contradiction_in(result, lane, report.seconds);
  return contradiction.empty() ? "" : "contradicts itself: " + contradiction;
}

void check_scenarios(const Report& report, std::vector<Refusal>& refusals) {
  std::set<std::string> names;
  for (const auto& result : report.scenarios) {
    const std::string again =
        result.replay.empty() ? kRepair : std::string("see it again: ") + result.replay;
    if (!names.insert(result.name).second) {
      refusals.push_back({"", result.name, "occurs in the report twice", kWriteAgain});
    }
    if (result.verdict == Verdict::kPass) {
      const std::string flaw = flaw_in(result, report);
      if (!flaw.empty()) refusals.push_back({"", result.name, "claims pass, but " + flaw, again});
    } else if (result.verdict != Verdict::kNotRun) {
      const std::string code = result.code.empty() ? "" : ": " + result.code;
      const std::string reason = result.reason.empty() ? "" : ": " + result.reason;
      refusals.push_back({"", result.name, name_of(result.verdict) + code + reason, again});
    }
  }
}

/// True if the result holds something that only a run can show.
bool has_evidence(const ScenarioResult& result) {
  return result.doubled || !(result.seconds >= 0 && result.seconds <= kSecondsMax) ||
         !result.diagnosis.empty() || result.replans > 0 || !result.event_hash.empty() ||
         !result.content_digest.empty() || !result.ranks.empty() || !result.lives.empty() ||
         !result.layouts.empty() || !result.trajectory.empty() || !result.faults.empty() ||
         !result.generations.empty();
}

/// Checks that the lists of scenarios and of skipped scenarios agree with each other and with the
/// planned number. Adds a refusal for each contradiction.
void check_plan(const Report& report, std::vector<Refusal>& refusals) {
  std::set<std::string> listed;
  std::set<std::string> not_run;
  for (const auto& result : report.scenarios) {
    listed.insert(result.name);
    if (result.verdict == Verdict::kNotRun) not_run.insert(result.name);
  }
  for (const auto& skipped : report.skipped) {
    if (skipped.reason.empty()) {
      refusals.push_back(
          {"", skipped.scenario, "was not run, but no reason is given", kWriteAgain});
    }
    if (listed.insert(skipped.scenario).second) continue;
    if (not_run.erase(skipped.scenario) == 0) {
      refusals.push_back(
          {"", skipped.scenario, "is listed both as skipped and as run", kWriteAgain});
    }
  }
  for (const auto& name : not_run) {
    refusals.push_back({"", name, "was not run but is not listed as skipped", kWriteAgain});
  }
  for (const auto& result : report.scenarios) {
    if (result.verdict != Verdict::kNotRun || !has_evidence(result)) continue;
    refusals.push_back({"", result.name, "was not run but has evidence", kWriteAgain});
  }
  if (report.planned != listed.size()) {
    refusals.push_back({"", "lanes.planned",
                        "says " + std::to_string(report.planned) + ", but the report holds " +
                            counted(listed.size(), "scenario"),
                        kWriteAgain});
  }
}

/// Returns a flaw if some value is said to occur in more cases than the property ran; empty if
/// there is no such value.
std::string flaw_in_distribution(const PropertyResult& property) {
  for (const auto& [axis, values] : property.distribution) {
    for (const auto& [value, count] : values) {
      if (count <= property.cases) continue;
      return "says that " + axis + " " + value + " came up in " + counted(count, "case") + " of " +
             std::to_string(property.cases);
    }
  }
  return "";
}

void check_properties(const Report& report, std::vector<Refusal>& refusals) {
  std::set<std::string> names;
  for (const auto& property : report.properties) {
    const std::string subject = "property " + property.name;
    const std::string flaw = flaw_in_distribution(property);
    if (!flaw.empty()) refusals.push_back({"", subject, flaw, kWriteAgain});
    if (property.cases > kCountMax) {
      refusals.push_back(
          {"", subject,
           "says that it tried " + counted(property.cases, "case") + ", which no run does",
           kWriteAgain});
    }
    if (!names.insert(property.name).second) {
      refusals.push_back({"", subject, "occurs in the report twice", kWriteAgain});
    }
    if (property.verdict != Verdict::kPass) {
      const std::string shrunk = property.counterexample ? ": " + *property.counterexample : "";
      refusals.push_back(
          {"", subject,
           name_of(property.verdict) + " with seed " + std::to_string(property.seed) + shrunk,
           kRepair});
    } else if (property.counterexample) {
      refusals.push_back({"", subject, "claims pass, but has a counterexample", kWriteAgain});
    } else if (!property.code.empty()) {
      refusals.push_back(
          {"", subject, "claims pass, but has the code " + property.code, kWriteAgain});
    } else if (property.cases == 0) {
      refusals.push_back({"", subject, "claims pass, but tried no case", "give it cases"});
    }
  }
}

void check_mutants(const Report& report, std::vector<Refusal>& refusals) {
  std::set<std::string> names;
  for (const auto& mutant : report.mutants) {
    if (!names.insert(mutant.name).second) {
      refusals.push_back({"", "mutant " + mutant.name, "occurs in the report twice", kWriteAgain});
    }
    const bool named = !mutant.caught_by.empty();
    const bool passed =
        std::any_of(mutant.caught_by.begin(), mutant.caught_by.end(), [](const auto& by) {
          return by.verdict == name_of(Verdict::kPass) || by.verdict == name_of(Verdict::kNotRun);
        });
    const bool coded = std::ranges::all_of(mutant.caught_by, [](const auto& by) {
      return finding_code_named(by.verdict).has_value();
    });
    if (mutant.caught == named && coded) continue;
    refusals.push_back({"", "mutant " + mutant.name,
                        passed   ? "is said to be caught by something that passed or was not run"
                        : !coded ? "is said to be caught with a word that is not a code"
                        : mutant.caught ? "is said to be caught, but by nothing"
                                        : "is said to survive, but something caught it",
                        kWriteAgain});
  }
  const MutantsFinding finding = judge_mutants(report.mutants);
  if (finding.code.empty()) return;
  refusals.push_back({"", "mutants", finding.code + ": " + finding.reason,
                      "make a scenario or property catch it; 'reprise mutants' shows which did"});
}

void check_matrix(const Report& report, std::vector<Refusal>& refusals) {
  if (!report.matrix) return;
  for (const auto& flaw : flaws_of(*report.matrix)) {
    refusals.push_back(
        {"", "matrix", flaw,
         "make a scenario catch it, and run 'reprise mutants --matrix --report' again"});
  }
}

void check_exhaustive(const Report& report, std::vector<Refusal>& refusals) {
  std::set<std::string> spaces;
  for (const auto& tried : report.exhaustive) {
    if (!spaces.insert(tried.space()).second) {
      refusals.push_back({"", "exhaustive", tried.space() + " occurs twice", kWriteAgain});
    }
    for (const auto& flaw : flaws_of(tried)) {
      refusals.push_back(
          {"", "exhaustive", tried.space() + ": " + flaw,
           "run every part with 'reprise search exhaust --part I/N --report' into one "
           "report"});
    }
  }
}

void check_coverage(const Report& report, std::vector<Refusal>& refusals) {
  if (!report.coverage) return;
  for (const auto& flaw : flaws_of(*report.coverage)) {
    refusals.push_back(
        {"", "coverage", flaw,
         "'reprise search explore --recipe R' shows a timeline again; more --runs reach "
         "more marks"});
  }
}

void check_determinism(const Report& report, std::vector<Refusal>& refusals) {
  const std::uint64_t mismatches = determinism_mismatches(report);
  if (mismatches == 0) return;
  refusals.push_back(
      {"", "determinism",
       std::to_string(mismatches) + " of " + counted(runs_doubled(report), "doubled run") +
           " differed the second time",
       "find the source of nondeterminism: equal seeds must give equal event hashes"});
}

void check_shards(const Report& report, std::vector<Refusal>& refusals) {
  for (const auto& shard : report.shards) {
    refusals.push_back({"", "shards", text_of(shard),
                        "merge the reports of all shards: reprise merge REPORT... --report DIR"});
  }
}

Refusal refusal_of_mutant(const Report& report) {
  return {"", "mutant", "the run was made with the mutant " + report.mutant + " switched on",
          "run the lane again without --mutant"};
}

/// Returns one reason for all scenarios that the interruption kept from running.
Refusal refusal_of_interruption(const Report& report) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> names;
  for (const auto& skipped : report.skipped) {
    if (skipped.reason == kNotRunInterrupted) names.push_back(skipped.scenario);
  }
  std::string reason = kNotRunInterrupted;
  if (!names.empty()) {
    reason += ": " + counted(names.size(), "scenario") + (names.size() == 1 ? " was" : " were") +
              " not run: " + join_first(names, kNamed);
  }
  return {"", kInterrupted, reason, "run the lane to its end"};
}

}  // namespace

std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  return a > kMost - b ? kMost : a + b;
}

Compared compared_of(const ScenarioResult& result) {
  Compared sum;
  for (const auto& rank : result.ranks) {
    sum.leaves = saturating_sum(sum.leaves, rank.compared);
    sum.elements = saturating_sum(sum.elements, rank.elements);
  }
  return sum;
}

std::vector<Refusal> check_evidence(const Report& report) {
  if (!report.mutant.empty()) return {refusal_of_mutant(report)};
  std::vector<Refusal> refusals;
  const Verdict found = overall(report);
  // The interruption is a reason itself, and whatever else was inconclusive has one of its own.
  const bool told = report.interrupted && report.verdict == Verdict::kInconclusive;
  if (report.verdict != Verdict::kPass && !told) {
    refusals.push_back({"", "", "the verdict is " + name_of(report.verdict), kRepair});
  } else if (report.verdict == Verdict::kPass && found != Verdict::kPass) {
    refusals.push_back({"", "",
                        "the verdict is pass, but its own entries make it " + name_of(found),
                        kWriteAgain});
  }
  if (report.interrupted) refusals.push_back(refusal_of_interruption(report));
  if (!(report.seconds >= 0 && report.seconds <= kSecondsMax)) {
    refusals.push_back({"", "seconds", "is not a time that a run can take", kWriteAgain});
  }
  check_shards(report, refusals);
  check_scenarios(report, refusals);
  check_plan(report, refusals);
  check_properties(report, refusals);
  check_mutants(report, refusals);
  check_matrix(report, refusals);
  check_exhaustive(report, refusals);
  check_coverage(report, refusals);
  check_determinism(report, refusals);
  return refusals;
}

}  // namespace reprise::reports
