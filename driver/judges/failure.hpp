#pragma once
// Says where a scenario failed and what followed from it, from the records of its ranks. Pure.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/language/scenario.hpp"
#include "driver/record/record.hpp"
#include "reports/report.hpp"

namespace reprise::driver {

/// A first difference, and the life whose rank recorded it.
struct FoundDifference {
  std::size_t life = 0;
  std::optional<reports::FirstDifference> difference = {};
};

/// Returns the place of a rank in the layout of each module that it belongs to, such as
/// "tp1 ep0 pp1" or "language tp1, vision dp0". Axes of size 1 are left out.
std::string coordinates_of(const std::vector<sim::ModuleConfig>& modules, std::int32_t rank);

/// Returns the findings that concern all ranks of a life together: those of judge_life, and those
/// on the store and the life's processes.
Findings findings_on_all(const LifeRecord& life);

/// Returns the values of a first difference as text: "w[0, 7] saved 1, loaded 2, which is rank
/// 1's".
std::string values_text(const reports::FirstDifference& first);

/// Returns the fields of a failure that its cause alone has.
reports::Failure failure_from(const Finding& cause);

/// Returns the failure with the cause `found`. Everything else that the ranks of this life and of
/// later ones found is a consequence.
reports::Failure failure_of(const Scenario& scenario, std::span<const LifeRecord> lives,
                            const Finding& found, const FoundDifference& first);

}  // namespace reprise::driver
