#include "core/base/print.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/html_sections.hpp"

namespace reprise::reports {
namespace {

constexpr std::size_t kUnsteadyMax = 400;

void put_strips(const std::vector<HistoryStrip>& strips, std::string& out) {
  out += table_head({"what", "oldest to newest"});
  for (const auto& [subject, letters] : strips) {
    out += "<tr>" + cell_html(subject) + "<td>" + strip_html(letters) + "</td></tr>\n";
  }
  out += kTableEnd;
}

void put_reports(const Standing& standing, std::string& out) {
  out += "<details><summary>" + counted(standing.reports().size(), "report") + "</summary>" +
         table_head({"report", "started", "commit", "verdict"});
  for (const auto& one : standing.reports()) {
    out += "<tr>" + cell_html(one.file) + cell_html(one.started) + cell_html(one.commit) + "<td>" +
           verdict_html(name_of(one.verdict)) + "</td></tr>\n";
  }
  out += std::string(kTableEnd) + "</details>\n";
}

}  // namespace

std::string strip_html(std::string_view letters) {
  std::string out = "<span class=\"strip\">";
  for (const char letter : letters) {
    const std::string name(1, letter);
    const bool known = name.find_first_of("PFIN") != std::string::npos;
    out += "<span class=\"cell" + (known ? " " + name : "") + "\">" + in_html(name) + "</span>";
  }
  return out + "</span>";
}

std::string status_html(const Standing& standing, const std::string& subject) {
  const auto status = standing.status_of(subject);
  if (!status) return "";
  const std::string name = name_of(*status);
  return " <span class=\"status " + name + "\">" + name + "</span>";
}

void put_history(const Standing& standing, std::string& out) {
  if (!standing.is_known()) return;
  out +=
      "<section id=\"history\"><h2>History</h2>\n<p>One letter per report, this one last: P "
      "passed, F failed, I inconclusive, N not run, a dot where it is not there.</p>\n";
  put_reports(standing, out);
  const auto resolved = standing.resolved();
  out += "<h3>Resolved: " + with_commas(resolved.size()) + "</h3>\n";
  if (resolved.empty()) out += "<p>Nothing that was a problem before passes now.</p>\n";
  if (!resolved.empty()) put_strips(resolved, out);
  auto unsteady = standing.unsteady();
  const std::size_t more = unsteady.size() > kUnsteadyMax ? unsteady.size() - kUnsteadyMax : 0;
  unsteady.resize(unsteady.size() - more);
  if (!unsteady.empty()) {
    out += "<details><summary>No problem now, but not always alike: " +
           with_commas(unsteady.size() + more) + "</summary>\n";
    put_strips(unsteady, out);
    if (more > 0) out += "<p>" + with_commas(more) + " more are left out.</p>";
    out += "</details>\n";
  }
  out += "</section>\n";
}

}  // namespace reprise::reports
