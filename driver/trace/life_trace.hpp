#pragma once
// Makes the packets of a Perfetto trace from what the ranks of one life did.
//
//   process "placements/ep2, life 1: tp2 ep2"
//     track "rank 0 = tp0 ep0"      phases, their steps, collectives, calls to the store; faults
//     track "rank 1 = tp1 ep0"      as instants. A flow connects the ranks of a collective.
//     ...
//     track "store"                 the same calls to the store as the store sees them; in real
//                                   time those that overlap are on "store, overlapping 1" and so on
//
// In a world with rates, the copies of rank 0 over its bus are on "rank 0 = tp0 ep0, gather" and
// "..., scatter".

#include <cstdint>
#include <string>
#include <vector>

#include "sim/world/recording.hpp"

namespace reprise::driver {

struct TracedLife {
  /// Number of the life in the whole trace, from 1: its process, and part of all numbers of its
  /// tracks and flows. So nothing of two lives can be connected.
  std::uint32_t number = 1;
  std::string name = {};
  std::uint64_t begin_ns = 0;           ///< time in the trace at which the life begins
  std::vector<std::string> ranks = {};  ///< name of each rank of the life's world
};

/// Returns the packets in the order of their times. Traces of several lives can be joined end to
/// end.
std::string packets_of(const TracedLife& life, const sim::Recording& recording);

}  // namespace reprise::driver
