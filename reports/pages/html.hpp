#pragma once
// The frame of a page, and the parts that C++ writes itself: they stand there without a script,
// too.

#include <string>
#include <string_view>
#include <vector>

namespace reprise::reports {

/// Returns a whole page: one file that makes no request. Its security policy lets only page.css and
/// page.js in. `title` is text, `body` HTML.
std::string page_html(const std::string& title, const std::string& body);

/// Returns the verdict with a sign before it, so that it is not told by colour alone.
std::string verdict_html(std::string_view verdict);
/// Returns a cell of a table with text from the report.
std::string cell_html(std::string_view text);
/// Returns a cell with a count, set to the right.
std::string count_html(std::string_view number);
/// Returns the head of a table that scrolls inside the page. `look` names a class of the style
/// sheet.
std::string table_head(const std::vector<std::string>& columns, std::string_view look = "plain");
inline constexpr const char* kTableEnd = "</tbody></table></div>\n";

}  // namespace reprise::reports
