#pragma once
// Decorators that add faults to one rank's ports, on any lane.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "reprise/ports.hpp"
#include "sim/faults/fault_book.hpp"

namespace reprise::sim {

/// Actions that faults perform on one rank. Each lane implements them in its own way.
struct FaultPowers {
  /// Ends the rank's life as a crash does; does not return.
  std::function<void()> die;
  /// Pauses the rank for this duration.
  std::function<void(std::uint64_t duration_ns)> sleep;
  /// Ends the term of the lease on `path` and lets another writer take the lease. Empty if the
  /// store has no leases.
  std::function<void(const std::string& path)> take_lease = {};
  /// Does the same, and begins a save of the iteration `path`. Empty if the store has no leases.
  std::function<void(const std::string& path)> let_other_write = {};
};

class FaultyPorts {
 public:
  /// Borrows the inner ports and the book. Both must outlive this object and the ports that it
  /// returns.
  FaultyPorts(const Ports& inner, FaultBook& book, FaultPowers powers);
  ~FaultyPorts();
  FaultyPorts(const FaultyPorts&) = delete;
  FaultyPorts& operator=(const FaultyPorts&) = delete;

  /// Returns the decorated ports, which apply the rank's faults. After the rank has crashed, calls
  /// to these ports have no effect.
  const Ports& ports() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::sim
