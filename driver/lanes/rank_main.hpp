#pragma once
// Runs one rank in one life. The program is the same on every lane.

#include <optional>

#include "driver/record/rank_part.hpp"
#include "driver/record/record.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {

/// Runs the rank's job and compares it with an uninterrupted job from `references`. Every life
/// except the first begins by loading a checkpoint into a new job with another seed. Fills the
/// record while the job runs. Records the error that ends the rank, and also returns it. The
/// simulation kills a rank by throwing an exception, which this function does not catch. If the
/// rank is not a member of the job, does nothing.
std::optional<Error> rank_main(const RankPart& part, RankRecord& record);

}  // namespace reprise::driver
