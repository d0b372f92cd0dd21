#include "cli/output/watch_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "core/base/characters.hpp"
#include "core/base/print.hpp"
#include "core/base/printable.hpp"
#include "driver/watch/name_groups.hpp"

namespace reprise::cli {
namespace {

using driver::WatchFinding;
using driver::WatchJudgement;
using reports::Verdict;

constexpr std::size_t kWhereMost = 36;

std::string verdict_text(const WatchJudgement& judgement) {
  switch (judgement.verdict) {
    case Verdict::kPass:
      return "resume: pass";
    case Verdict::kFail:
      return "resume: FAIL";
    default:
      return "resume: inconclusive";
  }
}

std::string continuation_text(const WatchJudgement& judgement) {
  if (!judgement.continues_from) return "";
  if (*judgement.continues_from == 0) return "   begins anew";
  std::string text = fmt::format("   continues from step {}", *judgement.continues_from);
  if (!judgement.newest_save) return text;
  return text + (*judgement.newest_save == *judgement.continues_from
                     ? ", the newest save"
                     : fmt::format("; the newest save: step {}", *judgement.newest_save));
}

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t characters = characters_in(text);
  return text + std::string(width > characters ? width - characters : 0, ' ');
}

/// Prints where, ranks, what and code in columns. A long list of names has a line of its own.
void add_findings(const std::vector<WatchFinding>& findings, std::string& text) {
  std::vector<std::array<std::string, 3>> rows;
  std::array<std::size_t, 2> widths = {0, 0};
  for (const auto& finding : findings) {
    rows.push_back({printable(finding.where),
                    finding.ranks.empty()
                        ? ""
                        : reports::ranks_text({finding.ranks.begin(), finding.ranks.end()}),
                    printable(finding.text)});
    const std::size_t where = characters_in(rows.back()[0]);
    if (where <= kWhereMost) widths[0] = std::max(widths[0], where);
    widths[1] = std::max(widths[1], characters_in(rows.back()[1]));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [where, ranks, what] = rows[i];
    const bool fits = characters_in(where) <= widths[0];
    if (!fits) text += "  " + where + "\n";
    text += "  " + padded(fits ? where : "", widths[0]);
    if (widths[1] > 0) text += "  " + padded(ranks, widths[1]);
    text += "  " + what;
    const bool note = findings[i].severity == driver::Severity::kNote;
    text += note ? " (note)" : fmt::format("  {}", name_of(findings[i].code));
    text += '\n';
  }
}

/// Prints the output of the life whose end is the reason.
void add_log(const WatchFinding& finding, std::string& text) {
  if (finding.log.empty()) return;
  text += "\n  the last lines that it printed:\n";
  std::istringstream lines(finding.log);
  for (std::string line; std::getline(lines, line);) text += "    " + printable(line) + "\n";
}

/// Names what was not judged, one line for each reason.
void add_not_judged(const WatchJudgement& judgement, std::string& text) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& [name, why] : judgement.not_judged) by_reason[why].push_back(printable(name));
  for (const auto& [why, names] : by_reason) {
    text += "  not judged: " + driver::names_text(names) +
            (why.empty() ? "" : ": " + printable(why)) + "\n";
  }
}

void add_judged(const WatchJudgement& judgement, std::string& text) {
  const auto& counts = judgement.counts;
  std::vector<std::string> parts;
  const auto add = [&parts](std::size_t number, const char* noun) {
    if (number > 0) parts.push_back(counted(number, noun));
  };
  add(counts.tensors.size(), "tensor");
  add(counts.values.size(), "value");
  add(counts.random_states.size(), "random state");
  if (!counts.data_steps.empty()) {
    parts.push_back("data of " + counted(counts.data_steps.size(), "step"));
  }
  if (!counts.loss_steps.empty()) {
    parts.push_back("losses of " + counted(counts.loss_steps.size(), "step"));
  }
  if (parts.empty()) return;
  text += "  judged: " + join(parts, ", ");
  if (judgement.ranks.size() > 1) {
    text += fmt::format(", on {} ranks", judgement.ranks.size());
  }
  text += '\n';
}

}  // namespace

std::string watch_text(const driver::WatchJudgement& judgement) {
  std::string text = verdict_text(judgement) + continuation_text(judgement) + "\n";
  add_findings(judgement.findings, text);
  if (!judgement.findings.empty()) add_log(judgement.findings.front(), text);
  add_judged(judgement, text);
  add_not_judged(judgement, text);
  return text;
}

}  // namespace reprise::cli
