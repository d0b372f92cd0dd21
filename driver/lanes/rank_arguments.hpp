#pragma once
// Defines what the driver tells a rank of a lane with real processes, and the files by which the
// rank answers.

#include <cstdint>
#include <string>

#include "driver/language/scenario.hpp"
#include "driver/record/phase_log.hpp"

namespace reprise::driver {

/// Arguments that the driver passes to a rank on its command line.
struct RankArguments {
  LaneKind lane = LaneKind::kMpi;  ///< kMpi or kGpu
  std::int32_t world = 0;          ///< number of ranks of the launch
  std::string scenario;            ///< path of the scenario file
  std::uint64_t life = 0;
  std::string store;    ///< directory of the store
  std::string records;  ///< directory of this launch: earlier lives, locks, records, traces
  std::string mutant;
  LogOptions log;
  bool trace = false;  ///< true if the rank leaves its part of a trace (trace_part.hpp)
};

/// Name of the file in RankArguments::records that describes earlier lives.
inline constexpr const char* kPastFile = "past.json";
/// Returns the path of the file in which a rank leaves its record.
std::string record_file(const std::string& records, std::int32_t rank);

}  // namespace reprise::driver
