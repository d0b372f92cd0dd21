#pragma once
// Gives a rank's ports another trace.

#include <functional>
#include <utility>

#include "reprise/ports.hpp"

namespace reprise {

/// Tells a function of each event, and then the trace of somebody else.
class HeardTrace final : public Trace {
 public:
  using Hear = std::function<void(const TraceEvent&)>;
  /// Borrows `inner`.
  HeardTrace(Trace& inner, Hear hear) : inner_(inner), hear_(std::move(hear)) {}

  void event(const TraceEvent& event) override {
    hear_(event);
    inner_.event(event);
  }

 private:
  Trace& inner_;
  Hear hear_;
};

/// Returns `inner` with this trace. All other ports stay the same.
inline Ports traced(const Ports& inner, Trace& trace) {
  return {inner.store, inner.fabric, inner.device, inner.tasks, trace, inner.data};
}

}  // namespace reprise
