#include "core/adapters/cuda/copy_batch.hpp"

#include "core/base/check.hpp"

namespace reprise {

void CopyBatch::add(const StridedCopy& copy) {
  CHECK(table_.count < CopyParameters::kCopiesMax && copy.runs > 0, table_.count, copy.runs);
  StridedCopy& placed = table_.copies[table_.count++];
  placed = copy;
  placed.first_part = parts_;
  parts_ += copy.parts();
  bytes_ += copy.bytes();
}

void CopyBatch::queue(CudaStreamRef stream) {
  if (table_.count > 0) queue_copies(stream, table_, parts_);
  table_.count = 0;
  done_.record(stream);
}

void CopyBatch::finish() {
  for (const auto& [pinned, host, extents, element_bytes] : deliveries_) {
    copy_strided(pinned, host, extents, element_bytes);
  }
  parts_ = bytes_ = 0;
  deliveries_.clear();
  kept_.clear();
}

}  // namespace reprise
