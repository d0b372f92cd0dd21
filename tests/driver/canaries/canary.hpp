#pragma once
// Planted violations of determinism. Each makes the order of some small work depend on something
// that two runs with one seed do not share.

#include <string_view>
#include <vector>

#include "driver/lanes/sim_lane.hpp"

namespace reprise::driver::test {

/// The names of all violations.
inline constexpr std::string_view kCanaries[] = {"address-order", "time", "uninitialised-memory",
                                                 "hash-order", "threads"};

/// Returns the numbers 0 to 15 in the order that the violation of that name gives them. Without a
/// name they are in ascending order.
std::vector<int> order_by(std::string_view canary);

/// Returns memory of ranks in which every gather first does its work in that order, and says so in
/// the trace, as an engine would whose loop had the violation.
MemoryOf memory_with(std::string_view canary);

}  // namespace reprise::driver::test
