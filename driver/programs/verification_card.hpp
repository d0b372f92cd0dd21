#pragma once
// Writes a verdict as an item of a model verification card. Such cards are YAML files in which
// Megatron-Bridge records what was verified about a model.

#include <string>

#include "reports/report.hpp"

namespace reprise::driver {

/// Converts a report of resume-proof, which has only one scenario, to the item "checkpoint_resume".
/// Leaves out the hardware key under which a card nests this item. The item is `verified` only if
/// the verdict is pass. The comparison requires equal bits, so its tolerances are 0. The expected
/// result also lists what the report does not claim.
std::string verification_card(const reports::Report& report);

}  // namespace reprise::driver
