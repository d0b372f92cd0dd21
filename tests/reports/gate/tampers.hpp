#pragma once
// Changes each value of a report.json, one at a time, and says which changes the gate accepts.

#include <map>
#include <set>
#include <string>

#include "reports/gate/demand.hpp"

namespace reprise::reports::test {

/// Holds the changes of each field that were accepted, by the field's path without positions, such
/// as "scenarios[].ranks[].elements".
using AcceptedTampers = std::map<std::string, std::set<std::string>>;

/// Tries every change of every value of a report: other numbers, texts and flags, a list or an
/// object with an item less or twice, and none of it. Changes that the report's reader refuses or
/// that leave the report as it was are no tampers. `report` must be accepted beside the baseline.
AcceptedTampers accepted_tampers(const std::string& report, const Floors& baseline,
                                 const std::string& commit);

}  // namespace reprise::reports::test
