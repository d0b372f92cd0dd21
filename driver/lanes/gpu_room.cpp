#include "driver/lanes/gpu_room.hpp"

#include "core/adapters/cuda/cuda_info.hpp"
#include "driver/record/build_info.hpp"

namespace reprise::driver {

std::optional<std::string> why_no_gpus(std::int32_t ranks, std::int32_t ranks_per_gpu) {
  if (!build_info().has_cuda) return "this program was built without CUDA";
  if (!build_info().has_nccl) return "this program was built without NCCL";
  return why_no_room(ranks, {cuda_devices().size(), cuda_why_none(), ranks_per_gpu});
}

std::optional<std::string> why_no_room(std::int32_t ranks, const GpuRoom& room) {
  if (room.devices == 0) return "no GPU: " + room.why_none;
  const auto most = static_cast<std::int64_t>(room.devices) * room.ranks_per_gpu;
  if (ranks <= most) return std::nullopt;
  return "it has " + std::to_string(ranks) + " ranks, but " + std::to_string(room.devices) +
         (room.devices == 1 ? " GPU takes " : " GPUs take ") + std::to_string(most) +
         ": raise --ranks-per-gpu to allow more";
}

}  // namespace reprise::driver
