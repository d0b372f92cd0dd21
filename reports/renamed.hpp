#pragma once
// Documents of version 1, brought up to today's words. The one table of what was renamed.

#include <nlohmann/json.hpp>

namespace reprise::reports {

/// Rewrites a report or a baseline of version 1 in place: fields of ranks, and codes wherever a
/// verdict, a reason or a course names them. Leaves any other document as it is, and leaves it to
/// the reader to refuse what is malformed.
void bring_up_to_date(nlohmann::json& document);

}  // namespace reprise::reports
