#pragma once
// All interfaces through which the engine of one rank touches the world. Store, fabric and device
// have their own headers; background work and traces are here.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "reprise/device.hpp"
#include "reprise/fabric.hpp"
#include "reprise/store.hpp"

namespace reprise REPRISE_API {

/// A piece of background work. The destructor waits until it is finished. Several threads may query
/// it and wait for it at once: the caller and the next piece of work.
class Task {
 public:
  virtual ~Task() = default;
  /// True once the work has returned or thrown; does not block.
  virtual bool done() = 0;
  /// Blocks until done. Rethrows an exception of the work to one of the waiting callers.
  virtual void wait() = 0;
};

/// Runs background work of one rank: staging and writing, never communication.
class Tasks {
 public:
  virtual ~Tasks() = default;
  /// Starts `work`. The implementation decides if it runs concurrently or before the call
  /// returns.
  virtual std::unique_ptr<Task> start(std::function<void()> work) = 0;
};

/// A phase has a begin and an end; an event without a phase counts as an end.
enum class Moment : std::uint8_t { kBegin, kEnd };

struct TraceEvent {
  std::string_view phase;  ///< plan, agree, stage, write, vote, commit, load, ...
  std::string detail;      ///< key, file or protocol step
  std::uint64_t bytes = 0;
  std::uint64_t items = 0;
  Moment moment = Moment::kEnd;
};

/// Receives events from the engine, for logs, event hashes and reports.
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

/// References to ports; their owner, such as a Job, keeps them alive.
struct Ports {
  Store& store;
  Fabric& fabric;
  Device& device;
  Tasks& tasks;
  Trace& trace;
};

}  // namespace REPRISE_API
