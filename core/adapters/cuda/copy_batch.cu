#include "core/adapters/cuda/copy_batch.hpp"
#include "core/adapters/cuda/launch.cuh"

namespace reprise {
namespace {

/// Enough blocks to keep the bus busy: together they copy 256 KiB at any time. The rest of
/// the GPU stays available to the job.
constexpr std::int64_t kCopyBlocks = 64;

template <class Copy>
void load_kernel_of(int device) {
  cudaFuncAttributes attributes = {};
  check_cuda_code(cudaFuncGetAttributes(&attributes, for_each_index<CopyParameters<Copy>>), device);
}

template <class Copy>
void launch_table(CudaStreamRef stream, const CopyParameters<Copy>& table, std::int64_t parts) {
  const std::int64_t blocks = (parts + kThreadsPerBlock - 1) / kThreadsPerBlock;
  launch_on_current(stream, std::min(blocks, kCopyBlocks), "launch",
                    for_each_index<CopyParameters<Copy>>, parts, table);
}

}  // namespace

void load_copy_kernels(int device) {
  const CudaScope scope(device);
  load_kernel_of<ContiguousCopy>(device);
  load_kernel_of<StridedCopy>(device);
}

void queue_copies(CudaStreamRef stream, const CopyParameters<ContiguousCopy>& table,
                  std::int64_t parts) {
  launch_table(stream, table, parts);
}
void queue_copies(CudaStreamRef stream, const CopyParameters<StridedCopy>& table,
                  std::int64_t parts) {
  launch_table(stream, table, parts);
}

}  // namespace reprise
