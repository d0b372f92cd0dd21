#pragma once
// The parts of report.html that are the same in every report.

#include <string_view>

namespace reprise::reports {

std::string_view page_style();
std::string_view page_script();

}  // namespace reprise::reports
