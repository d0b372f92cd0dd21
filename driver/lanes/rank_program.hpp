#pragma once
// Runs one rank in one incarnation. The program is the same on every lane.

#include <optional>

#include "driver/record/rank_part.hpp"
#include "driver/record/record.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {

/// Runs the rank's job and compares it with an uninterrupted job from `twins`. All incarnations but
/// the first begin by loading into a fresh job with another seed. Fills the record as things
/// happen, errors included, and returns the error that ended the rank; an exception that ends a
/// killed rank passes through. A rank that is not a member of the job does nothing.
std::optional<Error> run_rank(const RankPart& part, RankRecord& record);

}  // namespace reprise::driver
