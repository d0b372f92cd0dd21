#include "core/adapters/cuda/copy_batch.hpp"
#include "core/adapters/cuda/launch.cuh"

namespace reprise {
namespace {

/// Enough blocks to keep the bus busy: 256 KiB are then in flight. The job has the rest of the GPU.
constexpr std::int64_t kCopyBlocks = 64;

}  // namespace

void queue_copies(CudaStreamRef stream, const CopyTable& table, std::int64_t parts) {
  launch(stream, parts, table, kCopyBlocks);
}

}  // namespace reprise
