#pragma once

#include <functional>

#include "reprise/ports.hpp"

namespace reprise {

/// Remaining work for a full batch, in this order.
struct BatchWork {
  std::function<void()> settle;  ///< waits until every copy into the batch has ended
  std::function<void()> write;
};
/// The same work in two parts: the caller runs `now` before the next batch, the background `later`.
struct BatchOrder {
  std::function<void()> now;
  std::function<void()> later;
};
/// Settles now and writes later, so that the source may change once the caller continues.
BatchOrder settle_then_write(BatchWork work);
/// True if the task has ended.
bool is_done(Task& writing);

struct StageSeams {
  BatchOrder (*order)(BatchWork work) = settle_then_write;
  /// True if the memory of a batch that was handed over may be reused.
  bool (*free_again)(Task& writing) = is_done;
};

}  // namespace reprise
