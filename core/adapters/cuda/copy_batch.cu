#include "core/adapters/cuda/copy_batch.hpp"
#include "core/adapters/cuda/launch.cuh"

namespace reprise {
namespace {

/// As many as keep the bus busy: 256 KiB on their way. The rest of the GPU is the job's.
constexpr std::int64_t kCopyBlocks = 64;

}  // namespace

void queue_copies(CudaStreamRef stream, const CopyTable& table, std::int64_t parts) {
  launch(stream, parts, table, kCopyBlocks);
}

}  // namespace reprise
