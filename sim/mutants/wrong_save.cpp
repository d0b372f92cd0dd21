#include "sim/mutants/wrong_save.hpp"

#include <algorithm>

#include "sim/mutants/asked.hpp"

namespace reprise::sim {
namespace {

/// 7 over 3 is 0..3, 3..6, 6..7; this returns 0..3, 2..5, 4..7.
Interval floor_begin(std::int64_t length, std::int64_t parts, std::int64_t index) {
  const std::int64_t begin = index * (length / parts);
  const std::int64_t chunk = (length + parts - 1) / parts;
  return {begin, std::min(begin + chunk, length)};
}

}  // namespace

void describe_by_floor(Policies& policies) { policies.save.plan.describe = asked<floor_begin>; }

}  // namespace reprise::sim
