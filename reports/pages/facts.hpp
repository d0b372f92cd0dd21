#pragma once
// Collects what every page says of a report: what speaks against it, and which kinds of evidence it
// has.

#include <map>
#include <string>
#include <vector>

#include "reports/report.hpp"

namespace reprise::reports {

/// Something that speaks against a report.
struct Problem {
  const ScenarioResult* scenario = nullptr;  ///< in the report; null if no scenario is concerned
  Verdict verdict = Verdict::kFail;
  std::string subject;  ///< name of the scenario, of the property or of a part of the report
  std::string reason;
  std::string fix = {};
  std::uint64_t line = 1;  ///< in the scenario's file, counted from 1
};
/// Returns all problems, the worst first, and equally bad scenarios in the natural order of names:
/// scenarios that failed, then whatever else contradicts a pass, then files that could not be read
/// and scenarios that were inconclusive. Empty only for a report that supports a pass, apart from
/// what was not run. The report must outlive the result.
std::vector<Problem> problems_of(const Report& report);

/// Problems that look like one defect, the smallest first. Pages show one card for it.
using Card = std::vector<Problem>;
/// Groups the problems by what was found: what failed comes first, what is undecided last, and of
/// each the card with the most problems.
std::vector<Card> cards_of(const std::vector<Problem>& problems);
/// Returns the cause alone, if it is known; otherwise the whole reason.
std::string cause_of(const Problem& problem);
/// Returns the element or key that the scenario's failure is about, or else the key of its first
/// difference; empty if none is known.
std::string key_of(const ScenarioResult& result);

/// A kind of evidence, whether or not the report has it.
struct Evidence {
  std::string kind;
  std::string shown;    ///< what the report has of it; empty if it has none
  std::string absence;  ///< if it has none: why, or how to add it
};
/// True if the report is about stored checkpoints. No job ran then, so nothing that a run shows can
/// be there.
bool is_of_files(const Report& report);

/// Returns every kind of evidence that the lane can have, in a fixed order.
std::vector<Evidence> evidence_of(const Report& report);

/// Returns the names of what was not run, by reason.
std::map<std::string, std::vector<std::string>> not_run_of(const Report& report);

/// Returns the verdict in a word of a title. A report that says pass and contradicts it is called
/// "unsupported".
std::string verdict_word(const Report& report, const std::vector<Problem>& problems);
/// Returns a sentence such as "12 scenarios on lane sim in 3.5 s: 11 pass, 1 fail".
std::string outline_of(const Report& report);

/// Returns the words for the two values of a difference: of a run "saved" and "loaded", and of two
/// stored checkpoints "in A" and "in B".
struct SideWords {
  const char* left;
  const char* right;
};
SideWords side_words(const Report& report);

/// Returns "tp2 -> tp4".
std::string layouts_of(const ScenarioResult& result);
/// Returns the number with that many digits after the point.
std::string fixed(double value, int digits);
/// Returns the commit, with what must be known about it.
std::string commit_of(const Report& report);

}  // namespace reprise::reports
