#pragma once
// Background work of one rank. It stages and writes; it never communicates.

#include <cstdint>
#include <functional>
#include <memory>

namespace reprise {

/// A piece of background work. Destroying it unfinished waits for it. Several threads may ask and
/// wait at once: the caller, and the next piece of work.
class Task {
 public:
  virtual ~Task() = default;
  /// True once the work returned or threw; does not block.
  virtual bool done() = 0;
  /// Blocks until done and rethrows what the work threw, to one of those who wait.
  virtual void wait() = 0;
};

class Tasks {
 public:
  virtual ~Tasks() = default;
  /// Starts `work`; runs beside the caller, or before the call returns, as the lane decides.
  virtual std::unique_ptr<Task> start(std::function<void()> work) = 0;
};

}  // namespace reprise
