#pragma once
// Gives a rank's ports another trace.

#include "reprise/ports.hpp"

namespace reprise {

/// Returns `inner` with this trace. All other ports stay the same.
inline Ports traced(const Ports& inner, Trace& trace) {
  return {inner.store, inner.fabric, inner.device, inner.tasks, trace, inner.data};
}

}  // namespace reprise
