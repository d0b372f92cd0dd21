#include "core/adapters/cuda/copy_batches.hpp"

#include <algorithm>
#include <utility>

namespace reprise {

CopyBatch& CopyBatches::open(Kind kind) {
  if (open_.copies) return *open_.copies;
  open_.event = ++last_event_;
  open_.kind = kind;
  // A wait that still asks for the end of a batch keeps it as it is.
  const auto unused = std::find_if(spare_.begin(), spare_.end(),
                                   [](const auto& batch) { return batch.use_count() == 1; });
  if (unused == spare_.end()) {
    open_.copies = std::make_shared<CopyBatch>(device_, tables_);
  } else {
    open_.copies = std::move(*unused);
    spare_.erase(unused);
  }
  return *open_.copies;
}

void CopyBatches::enqueue() {
  refused_ = false;
  queued_.push_back(std::exchange(open_, {}));
}

CopyBatches::Ends CopyBatches::ends_of(std::uint64_t event) const {
  Ends ends;
  for (const Batch& batch : queued_) {
    if (batch.event > event) break;
    if (batch.copies->ways().kernels) ends.kernels = batch.copies;
    if (batch.copies->ways().engine) ends.engine = batch.copies;
  }
  return ends;
}

void CopyBatches::finish(std::uint64_t event) {
  for (; queued_by(event); queued_.pop_front()) {
    queued_.front().copies->finish();
    spare_.push_back(std::move(queued_.front().copies));
  }
}

void CopyBatches::give_up_refused() {
  if (!std::exchange(refused_, false)) return;
  forgotten_.push_back(open_.event);
  last_event_ = open_.event + 1;
  open_.copies->drop();
  spare_.push_back(std::move(open_.copies));
}

bool CopyBatches::gave_up(std::uint64_t event) const {
  return std::find(forgotten_.begin(), forgotten_.end(), event) != forgotten_.end();
}

}  // namespace reprise
