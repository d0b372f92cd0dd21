#pragma once
// The sections of report.html. Each function appends HTML.

#include <string>
#include <string_view>
#include <vector>

#include "reports/pages/facts.hpp"
#include "reports/pages/standing.hpp"
#include "reports/report.hpp"

namespace reprise::reports {

/// Returns a whole page. Its security policy forbids every request, and any script but its own.
/// `title` is text, `body` HTML.
std::string page_html(const std::string& title, const std::string& body);

/// Returns the verdict with a sign before it, so that it is not told by colour alone. A count may
/// follow it.
std::string verdict_html(std::string_view verdict);
/// Returns a cell of a table with text from the report.
std::string cell_html(std::string_view text);
/// Returns a cell with a count, set to the right.
std::string count_html(std::string_view number);
/// Returns the head of a table that scrolls inside the page; `</table></div>` ends it.
std::string table_head(const std::vector<std::string>& columns);
inline constexpr const char* kTableEnd = "</tbody></table></div>\n";

/// Returns the letters of a strip as cells, one per report.
std::string strip_html(std::string_view letters);
/// Returns the status of a problem, with a space before it; empty if it is not known.
std::string status_html(const Standing& standing, const std::string& subject);

/// All problems: a block for each scenario, the worst first.
void put_problems(const Report& report, const std::vector<Problem>& problems,
                  const Standing& standing, std::string& out);
/// Lists what was a problem before, and shows how everything ended in the earlier reports. Writes
/// nothing without earlier reports.
void put_history(const Standing& standing, std::string& out);
/// Writes which kinds of evidence the report has, and what it does not claim.
void put_evidence(const Report& report, bool open, std::string& out);
void put_properties(const Report& report, std::string& out);
void put_pairs(const Report& report, std::string& out);
void put_mutants(const Report& report, std::string& out);
void put_matrix(const Report& report, std::string& out);
void put_search(const Report& report, std::string& out);
/// The table of scenarios, folded by file, with a filter.
void put_scenarios(const Report& report, std::string& out);

}  // namespace reprise::reports
