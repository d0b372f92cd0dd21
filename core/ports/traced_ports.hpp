#pragma once
// Gives a rank's ports another trace.

#include <functional>
#include <utility>

#include "reprise/ports.hpp"

namespace reprise {

/// Tells a function of each event, and then the trace of somebody else.
class TappedTrace final : public Trace {
 public:
  using OnEvent = std::function<void(const TraceEvent&)>;
  /// Borrows `inner`.
  TappedTrace(Trace& inner, OnEvent on_event) : inner_(inner), on_event_(std::move(on_event)) {}

  void event(const TraceEvent& event) override {
    on_event_(event);
    inner_.event(event);
  }

 private:
  Trace& inner_;
  OnEvent on_event_;
};

/// Returns `inner` with this trace. All other ports stay the same.
inline Ports traced(const Ports& inner, Trace& trace) {
  return {inner.store, inner.fabric, inner.device, inner.tasks, trace, inner.data};
}

}  // namespace reprise
