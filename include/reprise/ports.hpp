#pragma once
// Everything through which the engine touches the world, for one rank. Store, fabric and device
// have headers of their own; background work and traces are here.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "reprise/device.hpp"
#include "reprise/fabric.hpp"
#include "reprise/store.hpp"

namespace reprise REPRISE_API {

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

/// Background work of one rank. It stages and writes; it never communicates.
class Tasks {
 public:
  virtual ~Tasks() = default;
  /// Starts `work`; runs beside the caller, or before the call returns, as the implementation
  /// decides.
  virtual std::unique_ptr<Task> start(std::function<void()> work) = 0;
};

/// A phase has two ends; what is traced without one is its end.
enum class Moment : std::uint8_t { kBegin, kEnd };

struct TraceEvent {
  std::string_view phase;  ///< plan, agree, stage, write, vote, commit, load, ...
  std::string detail;      ///< key, file or step of a protocol
  std::uint64_t bytes = 0;
  std::uint64_t items = 0;
  Moment moment = Moment::kEnd;
};

/// Sees what the engine does, for logs, event hashes and reports.
class Trace {
 public:
  virtual ~Trace() = default;
  virtual void event(const TraceEvent& event) = 0;
};

/// Drops every event.
class NoTrace final : public Trace {
 public:
  void event(const TraceEvent& /*event*/) override {}
};

/// Borrowed; their owner, such as a Job, keeps them alive.
struct Ports {
  Store& store;
  Fabric& fabric;
  Device& device;
  Tasks& tasks;
  Trace& trace;
};

}  // namespace REPRISE_API
