#include "core/adapters/cuda/copy_batch.hpp"
#include "core/adapters/cuda/launch.cuh"

namespace reprise {
namespace {

/// Enough blocks to keep the bus busy: together they copy 256 KiB at any time. The rest of
/// the GPU stays available to the job.
constexpr std::int64_t kCopyBlocks = 64;

}  // namespace

void load_copy_kernel(int device) {
  const CudaScope scope(device);
  cudaFuncAttributes attributes = {};
  check_cuda_code(cudaFuncGetAttributes(&attributes, for_each_index<CopyParameters>), device);
}

void queue_copies(CudaStreamRef stream, const CopyParameters& table, std::int64_t parts) {
  launch(stream, parts, table, kCopyBlocks);
}

}  // namespace reprise
