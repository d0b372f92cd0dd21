#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "core/base/print.hpp"
#include "reports/cause.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/facts.hpp"
#include "reports/pages/pages.hpp"

namespace reprise::reports {
namespace {

constexpr std::size_t kMessageBytesMax = 4000;

std::string annotation_of(const Problem& problem, const Report& report, const Standing& standing) {
  std::string place;
  if (problem.scenario != nullptr && !problem.scenario->file.empty()) {
    place = "file=" + in_annotation_property(problem.scenario->file) +
            ",line=" + std::to_string(problem.line) + ",";
  }
  std::string message = clipped(problem.reason, kMessageBytesMax);
  if (!problem.fix.empty()) {
    message += (problem.scenario == nullptr ? "\nfix: " : "\nsee it again: ") + problem.fix;
  }
  const auto status = standing.status_of(problem.subject);
  const std::string title = name_of(report.lane) + ": " + name_of(problem.verdict) +
                            (status ? " (" + name_of(*status) + ")" : "") + ": " +
                            clipped(problem.subject, kMessageBytesMax);
  return "::error " + place + "title=" + in_annotation_property(title) +
         "::" + in_annotation(message);
}

}  // namespace

std::vector<std::string> annotations_of(const Report& report, std::span<const PastReport> earlier) {
  const Standing standing(report, earlier);
  auto problems = problems_of(report);
  std::set<const ScenarioResult*> firsts;  // one of each cause
  for (const auto& cause : causes_of(report.scenarios)) firsts.insert(&cause.smallest());
  std::ranges::stable_sort(problems, std::less{}, [&](const Problem& problem) {
    const bool repeats = problem.scenario != nullptr &&
                         problem.scenario->verdict == Verdict::kFail &&
                         !firsts.contains(problem.scenario);
    return std::pair(standing.status_of(problem.subject) != FindingStatus::kNew, repeats);
  });
  std::vector<std::string> lines;
  for (const auto& problem : problems) {
    if (lines.size() + 1 == kAnnotationsMax) break;
    lines.push_back(annotation_of(problem, report, standing));
  }
  if (const auto more = problems.size() - lines.size(); more > 0) {
    lines.push_back("::error title=" + in_annotation_property(with_commas(more) + " more") +
                    "::" + in_annotation(with_commas(more) + " more problems are in report.html"));
  }
  return lines;
}

}  // namespace reprise::reports
