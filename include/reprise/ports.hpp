#pragma once
// Defines all interfaces between the engine of one rank and its environment. Store, fabric and
// device have their own headers; background work and traces are here.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "reprise/device.hpp"
#include "reprise/fabric.hpp"
#include "reprise/store.hpp"

namespace reprise REPRISE_API {

/// Background work that was started. The destructor waits until the work is finished. Several
/// threads may call done() and wait() at once.
class Task {
 public:
  virtual ~Task() = default;
  /// True once the work has returned or thrown; does not block.
  virtual bool done() = 0;
  /// Blocks until done. If the work threw an exception, the exception is rethrown in one of the
  /// waiting callers.
  virtual void wait() = 0;
};

/// Runs background work of one rank. That work stages, writes and reads; it never communicates.
class Tasks {
 public:
  virtual ~Tasks() = default;
  /// Starts `work`. The implementation decides whether the work runs concurrently or before the
  /// call returns.
  virtual std::unique_ptr<Task> start(std::function<void()> work) = 0;
  /// Number of pieces of work that run at the same time. Loads into host memory, and saves of it
  /// that wait for the files anyway, use them all if there are several.
  virtual int threads() const { return 1; }
};

/// Each phase begins with a kBegin event and ends with a kEnd event. Events outside all phases have
/// the moment kEnd.
enum class Moment : std::uint8_t { kBegin, kEnd };

struct TraceEvent {
  std::string_view phase;  ///< plan, agree, stage, write, vote, commit, load, and so on
  std::string detail;      ///< key, file or step of the protocol
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

/// References to the ports of a rank. The owner of the ports, such as a Job, keeps them alive.
struct Ports {
  Store& store;
  Fabric& fabric;
  Device& device;
  Tasks& tasks;
  Trace& trace;
  /// Carries only the bytes that a load reads once for several ranks; null if `fabric` carries
  /// them, too. All else goes over `fabric`, failures of this one included: a rank whose device is
  /// sick can still say so. So the deadline of `fabric` must be longer than the one of `data`.
  Fabric* data = nullptr;
  /// Asked now and then while a save or a load works or waits for this rank's own work; if it
  /// returns true, all ranks throw INTERRUPTED. Null if nothing interrupts.
  const std::function<bool()>* interrupted = nullptr;
};

}  // namespace REPRISE_API
