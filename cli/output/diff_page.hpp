#pragma once
// Shows the result of `diff` as a page: what differs, and where in the model.

#include <string>

#include "cli/output/files_report.hpp"
#include "core/diff/diff.hpp"

namespace reprise::cli {

/// Returns one self-contained page in HTML, in the look of report.html. Its first table has a
/// row for each group of keys and a column for each number in their keys, such as that of a layer;
/// a cell says which share of the elements differs.
std::string diff_page(const DiffRequest& request, const DiffReport& report);

}  // namespace reprise::cli
