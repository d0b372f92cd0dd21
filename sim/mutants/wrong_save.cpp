#include <algorithm>

#include "core/base/codes.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

/// Returns an interval of ceil(n / parts) elements that begins at a multiple of floor(n / parts).
/// For 7 elements in 3 parts this gives 0..3, 2..5, 4..7; the correct intervals are 0..3, 3..6,
/// 6..7.
Interval floor_begin(std::int64_t length, std::int64_t parts, std::int64_t index) {
  const std::int64_t begin = index * (length / parts);
  const std::int64_t chunk = (length + parts - 1) / parts;
  return {begin, std::min(begin + chunk, length)};
}

const Registration kFloorVsCeilChunk({
    "floor-vs-ceil-chunk",
    "The metadata describes uneven shards by floor division, but the data is cut into ceil "
    "chunks.",
    "SaveSeams::plan.describe",
    "an uneven split: tp 2 of a vocabulary of 131",
    {Code::kChunkOverlap, Code::kCoverageGap},
    [](Policies& policies) { policies.save.plan.describe = asked<floor_begin>; },
});

}  // namespace
}  // namespace reprise::sim
