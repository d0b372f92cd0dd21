#include "reports/pages/facts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"
#include "core/base/shell_word.hpp"
#include "reports/cause.hpp"
#include "reports/evidence.hpp"

namespace reprise::reports {
namespace {

bool is_problem(const ScenarioResult& result) {
  return result.verdict == Verdict::kFail || result.verdict == Verdict::kInconclusive ||
         is_unreadable(result);
}

/// Returns the line that the reason names as "FILE:LINE:", and 1 if it names none.
std::uint64_t line_in_reason(const ScenarioResult& result) {
  const std::string before = result.file + ":";
  const auto at = result.reason.find(before);
  std::uint64_t line = 1;
  if (!result.file.empty() && at != std::string::npos) {
    const char* const begin = result.reason.data() + at + before.size();
    std::from_chars(begin, result.reason.data() + result.reason.size(), line);
  }
  return line;
}

Problem problem_of(const ScenarioResult& result) {
  const std::string between = result.code.empty() || result.reason.empty() ? "" : ": ";
  std::string reason = result.code + between + result.reason;
  if (reason.empty()) reason = "no reason is given";
  Problem problem{&result, result.verdict, result.name, std::move(reason), result.replay};
  if (is_unreadable(result)) {
    problem.line = line_in_reason(result);
    problem.fix = "reprise run " + shell_word(result.file) + " --dry-run";
  }
  return problem;
}

/// True if the refusal repeats the verdict of a scenario that is a problem of its own.
bool repeats_verdict(const Refusal& refusal, const std::set<std::string>& judged) {
  return judged.contains(refusal.subject) &&
         (refusal.reason.starts_with(name_of(Verdict::kFail)) ||
          refusal.reason.starts_with(name_of(Verdict::kInconclusive)));
}

/// Returns "5 pass, 1 fail".
std::string by_verdict(const Report& report) {
  std::string text;
  for (const auto verdict :
       {Verdict::kPass, Verdict::kFail, Verdict::kInconclusive, Verdict::kNotRun}) {
    const auto count = std::ranges::count(report.scenarios, verdict, &ScenarioResult::verdict);
    if (count == 0) continue;
    text += (text.empty() ? "" : ", ") + with_commas(static_cast<std::uint64_t>(count)) + " " +
            (verdict == Verdict::kNotRun ? "not run" : name_of(verdict));
  }
  return text;
}

/// Returns "12 scenarios"; of stored checkpoints "2 results".
std::string counted_results(const Report& report) {
  return counted(report.scenarios.size(), is_of_files(report) ? "result" : "scenario");
}

std::string shown_of_scenarios(const Report& report) {
  if (report.scenarios.empty()) return "";
  return counted_results(report) + ": " + by_verdict(report);
}

std::string shown_of_doubled(const Report& report) {
  if (runs_doubled(report) == 0) return "";
  return counted(runs_doubled(report), "scenario") + " ran twice, " +
         with_commas(determinism_mismatches(report)) + " differed the second time";
}

std::string shown_of_properties(const Report& report) {
  if (report.properties.empty()) return "";
  std::uint64_t cases = 0;
  for (const auto& property : report.properties) cases = saturating_sum(cases, property.cases);
  const auto passed =
      std::ranges::count(report.properties, Verdict::kPass, &PropertyResult::verdict);
  return with_commas(static_cast<std::uint64_t>(passed)) + " of " +
         with_commas(report.properties.size()) + " pass, with " + counted(cases, "random case");
}

std::string shown_of_mutants(const Report& report) {
  if (report.mutants.empty()) return "";
  const auto caught = std::ranges::count(report.mutants, true, &MutantResult::caught);
  return with_commas(static_cast<std::uint64_t>(caught)) + " of " +
         counted(report.mutants.size(), "mutant") + " caught";
}

std::string shown_of_matrix(const Report& report) {
  if (!report.matrix) return "";
  return with_commas(report.matrix->caught()) + " of " + counted(report.matrix->mutants, "mutant") +
         " caught in " + counted(report.matrix->scenarios.size(), "scenario");
}

std::string shown_of_pairs(const Report& report) {
  std::string text;
  for (const auto& tried : report.exhaustive) {
    text += (text.empty() ? "" : "; ") + with_commas(tried.passed()) + " of " +
            counted(tried.pairs, "pair") + " of layouts pass (" + tried.space() + ")";
  }
  return text;
}

std::string shown_of_search(const Report& report) {
  if (!report.coverage) return "";
  const Coverage& coverage = *report.coverage;
  const auto open = std::ranges::count_if(
      coverage.findings, [](const auto& finding) { return finding.status != "resolved"; });
  return counted(coverage.runs, "random timeline") + ", " +
         counted(static_cast<std::uint64_t>(open), "open finding");
}

std::string shown_of_trainers(const Report& report) {
  return report.lane == ReportLane::kProgram ? shown_of_scenarios(report) : "";
}

/// A kind of evidence, and how a report of the lane sim comes to have it.
struct Kind {
  const char* name;
  std::string (*shown)(const Report& report);
  const char* command;
};
constexpr std::array kKinds = {
    Kind{"scenarios", shown_of_scenarios, "reprise run scenarios --report DIR"},
    Kind{"doubled runs", shown_of_doubled, "reprise run scenarios --double --report DIR"},
    Kind{"properties", shown_of_properties, "reprise search properties --report DIR"},
    Kind{"pairs of layouts", shown_of_pairs, "reprise search exhaust --report DIR"},
    Kind{"mutants", shown_of_mutants, "reprise mutants --report DIR"},
    Kind{"matrix of mutants", shown_of_matrix, "reprise mutants --matrix --report DIR"},
    Kind{"random timelines", shown_of_search, "reprise search explore --report DIR"},
    Kind{"trainers", shown_of_trainers,
         "reprise run scenarios/trainers --lane program --report DIR"}};

std::string absence_of(const Kind& kind, const Report& report) {
  const std::string command = "'" + std::string(kind.command) + "'";
  if (std::string_view(kind.name) == "trainers") {
    return "not run: " + command + " makes a report of their own";
  }
  const bool doubles = kind.shown == shown_of_doubled && report.lane != ReportLane::kProgram;
  const bool every_lane = kind.shown == shown_of_scenarios || doubles;
  if (report.lane != ReportLane::kSim && !every_lane) {
    return "not run: the report of the lane sim has them, from " + command;
  }
  return "not run: " + command + " adds them";
}

}  // namespace

bool is_of_files(const Report& report) { return report.lane == ReportLane::kFiles; }

SideWords side_words(const Report& report) {
  return is_of_files(report) ? SideWords{"in A", "in B"} : SideWords{"saved", "loaded"};
}

std::vector<Problem> problems_of(const Report& report) {
  std::vector<Problem> failed;
  std::vector<Problem> undecided;
  std::set<std::string> judged;
  for (const auto& result : report.scenarios) {
    if (!is_problem(result)) continue;
    judged.insert(result.name);
    (result.verdict == Verdict::kFail ? failed : undecided).push_back(problem_of(result));
  }
  for (auto* list : {&failed, &undecided}) {
    std::ranges::stable_sort(*list, in_natural_order, &Problem::subject);
  }
  std::vector<Problem> others;
  std::vector<Problem> summary;  // says only that there are problems
  for (const auto& refusal : check_evidence(report)) {
    if (repeats_verdict(refusal, judged)) continue;
    const bool whole = refusal.subject.empty();
    const bool passed = report.verdict == Verdict::kPass;
    // Every page says at its top that the run was interrupted, or had a mutant.
    const bool told = refusal.subject == kInterrupted || refusal.subject == "mutant";
    auto& list = told || (whole && !passed) ? summary : others;
    list.push_back({nullptr, whole && !passed ? report.verdict : Verdict::kFail,
                    whole ? "the report" : refusal.subject, refusal.reason, refusal.fix});
  }
  std::vector<Problem> problems = std::move(failed);
  problems.insert(problems.end(), others.begin(), others.end());
  problems.insert(problems.end(), undecided.begin(), undecided.end());
  return problems.empty() ? summary : problems;
}

std::vector<Card> cards_of(const std::vector<Problem>& problems) {
  std::vector<Card> cards;
  std::map<std::string, std::size_t> places;
  for (const auto& problem : problems) {
    const std::string found = problem.scenario == nullptr
                                  ? signature_of(problem.subject, problem.reason)
                                  : signature_of(*problem.scenario);
    const auto [at, fresh] =
        places.try_emplace(name_of(problem.verdict) + ' ' + found, cards.size());
    if (fresh) cards.emplace_back();
    cards[at->second].push_back(problem);
  }
  for (auto& card : cards) {
    std::ranges::stable_sort(card, [](const Problem& a, const Problem& b) {
      return a.scenario != nullptr && b.scenario != nullptr && is_smaller(*a.scenario, *b.scenario);
    });
  }
  std::ranges::stable_sort(cards, {}, [](const Card& card) {
    const Problem& first = card.front();
    const int rank = first.verdict != Verdict::kFail ? 2 : first.scenario == nullptr ? 1 : 0;
    return std::pair(rank, ~card.size());
  });
  return cards;
}

std::string cause_of(const Problem& problem) {
  if (problem.scenario == nullptr) return problem.reason;
  const ScenarioResult& result = *problem.scenario;
  if (result.failure && !result.failure->cause.empty()) return result.failure->cause;
  return result.reason.empty() ? "no reason is given" : result.reason;
}

std::string key_of(const ScenarioResult& result) {
  if (result.failure && !result.failure->key.empty()) {
    return element_text(result.failure->key, result.failure->index);
  }
  const auto& first = result.first_difference;
  return first ? element_text(first->key, first->index) : "";
}

std::vector<Evidence> evidence_of(const Report& report) {
  if (is_of_files(report)) return {{"results", shown_of_scenarios(report), "there are none"}};
  std::vector<Evidence> all;
  for (const auto& kind : kKinds) {
    Evidence evidence{kind.name, kind.shown(report), {}};
    if (evidence.shown.empty()) evidence.absence = absence_of(kind, report);
    all.push_back(std::move(evidence));
  }
  return all;
}

std::map<std::string, std::vector<std::string>> not_run_of(const Report& report) {
  std::map<std::string, std::vector<std::string>> by_reason;
  std::set<std::string> listed;
  for (const auto& skipped : report.skipped) {
    by_reason[skipped.reason].push_back(skipped.scenario);
    listed.insert(skipped.scenario);
  }
  for (const auto& result : report.scenarios) {
    if (result.verdict != Verdict::kNotRun || listed.contains(result.name)) continue;
    by_reason[result.reason].push_back(result.name);
  }
  return by_reason;
}

std::string verdict_word(const Report& report, const std::vector<Problem>& problems) {
  if (report.verdict == Verdict::kPass && !problems.empty()) return "unsupported";
  return report.verdict == Verdict::kNotRun ? "not run" : name_of(report.verdict);
}

std::string outline_of(const Report& report) {
  const std::string verdicts = by_verdict(report);
  return counted_results(report) + " on lane " + name_of(report.lane) + " in " +
         fixed(report.seconds, 1) + " s" + (verdicts.empty() ? "" : ": " + verdicts);
}

std::string fixed(double value, int digits) {
  std::array<char, 400> text{};  // the largest double has 309 digits
  const auto end = std::to_chars(text.begin(), text.end(), value, std::chars_format::fixed, digits);
  return {text.begin(), end.ptr};
}

std::string layouts_of(const ScenarioResult& result) { return join(result.layouts, " -> "); }

std::string commit_of(const Report& report) {
  return report.project.commit + (report.project.dirty ? " with uncommitted changes" : "");
}

}  // namespace reprise::reports
