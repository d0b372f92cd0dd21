#pragma once
// Everything through which the engine touches the world, for one rank.

#include "core/ports/clock.hpp"
#include "core/ports/device.hpp"
#include "core/ports/fabric.hpp"
#include "core/ports/store.hpp"
#include "core/ports/tasks.hpp"
#include "core/ports/trace.hpp"

namespace reprise {

/// Borrowed; the lane owns them and keeps them alive for the rank's life.
struct Ports {
  Store& store;
  Fabric& fabric;
  Device& device;
  Clock& clock;
  Tasks& tasks;
  Trace& trace;
};

}  // namespace reprise
