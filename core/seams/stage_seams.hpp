#pragma once

#include <functional>

#include "reprise/ports.hpp"

namespace reprise {

/// What must be done with a full batch: first `settle`, then `write`.
struct BatchWork {
  std::function<void()> settle;  ///< waits until every copy into the batch has ended
  std::function<void()> write;
};
/// The steps that write a batch, divided between two threads. The caller runs `now` before it fills
/// the next batch; a background task runs `later`.
struct BatchOrder {
  std::function<void()> now;
  std::function<void()> later;
};
/// Puts `settle` into `now` and `write` into `later`. The caller therefore continues only after all
/// copies into the batch have ended. After that, the source data may change.
BatchOrder settle_then_write(BatchWork work);
/// True if the task is done, successfully or not.
bool is_done(Task& writing);

struct StageSeams {
  BatchOrder (*order)(BatchWork work) = settle_then_write;
  /// True if the memory of a batch may be reused. `writing` is the task that writes the batch.
  bool (*free_again)(Task& writing) = is_done;
};

}  // namespace reprise
