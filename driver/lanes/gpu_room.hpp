#pragma once
// Tells if the machine has enough GPUs for the ranks of a scenario.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace reprise::driver {

/// The GPUs that a machine offers to ranks.
struct GpuRoom {
  std::size_t devices = 0;
  std::string why_none;  ///< reason why there are no devices; empty if there are some
  std::int32_t ranks_per_gpu = 1;
};

/// Both functions return the reason why a job of `ranks` ranks can't run, on this machine or with
/// the devices in `room`; nothing if it can.
std::optional<std::string> why_no_gpus(std::int32_t ranks, std::int32_t ranks_per_gpu);
std::optional<std::string> why_no_room(std::int32_t ranks, const GpuRoom& room);

}  // namespace reprise::driver
