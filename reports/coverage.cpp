#include "reports/coverage.hpp"

#include <algorithm>
#include <set>

#include "core/base/print.hpp"
#include "properties/finding_code.hpp"
#include "reports/evidence.hpp"

namespace reprise::reports {
namespace {

/// Returns what is wrong with the curve of new behaviour; empty if it ends with what the search
/// saw.
std::string flaw_in_curve(const Coverage& coverage) {
  CurvePoint before;
  for (const auto& point : coverage.curve) {
    const bool rises =
        point.runs > before.runs && point.marks >= before.marks && point.tuples >= before.tuples;
    if (!rises) return "its curve falls after " + with_commas(before.runs) + " timelines";
    before = point;
  }
  const std::uint64_t reached = coverage.marks.size() - unreached(coverage).size();
  if (before.runs == coverage.runs && before.marks == reached) return "";
  return "its curve ends with " + with_commas(before.marks) + " marks after " +
         with_commas(before.runs) + " timelines, and it reached " + with_commas(reached) + " in " +
         with_commas(coverage.runs);
}

bool is_open(const SearchFinding& finding) { return finding.status != "resolved"; }

}  // namespace

std::vector<std::string> unreached(const Coverage& coverage) {
  std::vector<std::string> names;
  for (const auto& mark : coverage.marks) {
    if (mark.count == 0) names.push_back(mark.name);
  }
  return names;
}

std::vector<std::string> rare(const Coverage& coverage) {
  std::vector<std::string> names;
  for (const auto& mark : coverage.marks) {
    if (mark.count > 0 && mark.count < kRareBelow) names.push_back(mark.name);
  }
  return names;
}

std::vector<std::string> flaws_of(const Coverage& coverage) {
  std::vector<std::string> flaws;
  for (const auto& finding : coverage.findings) {
    if (is_open(finding)) flaws.push_back("a timeline fails: " + finding.signature);
  }
  const auto missed = unreached(coverage);
  if (!missed.empty()) {
    flaws.push_back(with_commas(missed.size()) +
                    " marks were never reached: " + join_first(missed));
  }
  if (coverage.marks.empty()) flaws.emplace_back("it has no marks");
  if (coverage.inconclusive > 0) {
    flaws.push_back(with_commas(coverage.inconclusive) + " timelines were inconclusive");
  }
  if (coverage.runs > kCountMax) {
    flaws.push_back(with_commas(coverage.runs) + " timelines are more than any run tries");
  }
  if (coverage.runs == 0) flaws.emplace_back("no timeline ran");
  if (coverage.branches > coverage.runs) flaws.emplace_back("it has more branches than timelines");
  std::set<std::string> names;
  for (const auto& mark : coverage.marks) {
    if (!names.insert(mark.name).second) flaws.push_back("the mark " + mark.name + " occurs twice");
    if (mark.count > coverage.runs) flaws.push_back("more timelines than ran reached " + mark.name);
  }
  for (const auto& finding : coverage.findings) {
    if (finding_code_named(finding.code)) continue;
    flaws.push_back("a finding has the code " + finding.code + ", which is not a code");
  }
  const std::string curve = flaw_in_curve(coverage);
  if (!curve.empty()) flaws.push_back(curve);
  return flaws;
}

bool has_findings(const Coverage& coverage) {
  return std::any_of(coverage.findings.begin(), coverage.findings.end(), is_open);
}

}  // namespace reprise::reports
