#pragma once
// Asks the job if it was told to stop.

#include "reprise/error.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// Throws INTERRUPTED if the job was told to stop.
inline void require_uninterrupted(const Ports& ports) {
  if (ports.interrupted == nullptr || !(*ports.interrupted)()) return;
  throw Error(Code::kInterrupted, "the job was told to stop", {.rank = ports.fabric.rank()});
}

}  // namespace reprise
