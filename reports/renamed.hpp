#pragma once
// Converts documents of version 1 to the current names. No other file has a table of renamed words.

#include <nlohmann/json.hpp>

namespace reprise::reports {

/// Rewrites a report or a baseline of version 1 in place: the fields of ranks, and the codes in
/// verdicts, reasons and courses. Does not change any other document; the reader refuses malformed
/// ones.
void bring_up_to_date(nlohmann::json& document);

}  // namespace reprise::reports
