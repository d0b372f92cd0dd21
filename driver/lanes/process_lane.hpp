#pragma once
// Rules on how the processes of a life ended. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "driver/lanes/process.hpp"
#include "driver/record/record.hpp"

namespace reprise::driver {

/// Returns findings on how the launcher ended, after what `ranks` say of themselves, and on the
/// processes that it left behind. Ranks can't write these themselves, because they write their
/// records before they exit.
Findings findings_on(const std::string& launcher, const ProcessEnd& end,
                     const std::vector<RankRecord>& ranks, const std::vector<std::int64_t>& left);

}  // namespace reprise::driver
