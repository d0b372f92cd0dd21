#include "core/adapters/cuda/copy_batch.hpp"

#include <new>

#include "core/base/check.hpp"

namespace reprise {

CopyBatch::CopyBatch(int device)
    : table_(device, kCopiesMax * sizeof(StridedCopy)),
      device_table_(device, kCopiesMax * sizeof(StridedCopy)),
      done_(device) {}

void CopyBatch::add(const StridedCopy& copy) {
  CHECK(count_ < kCopiesMax && copy.runs > 0, count_, copy.runs);
  auto* const placed = new (table() + count_) StridedCopy(copy);
  placed->first_part = parts_;
  ++count_;
  parts_ += copy.parts();
  bytes_ += copy.bytes();
}

void CopyBatch::queue(CudaStreamRef stream) {
  if (count_ > 0) {
    copy_bytes(stream, table_.data(), device_table_.data(),
               static_cast<std::size_t>(count_) * sizeof(StridedCopy));
    queue_copies(stream, {reinterpret_cast<const StridedCopy*>(device_table_.data()), count_},
                 parts_);
  }
  done_.record(stream);
}

void CopyBatch::finish() {
  for (const auto& [pinned, host, extents, element_bytes] : deliveries_) {
    copy_strided(pinned, host, extents, element_bytes);
  }
  count_ = parts_ = bytes_ = 0;
  deliveries_.clear();
  kept_.clear();
}

}  // namespace reprise
