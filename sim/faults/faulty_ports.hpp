#pragma once
// One rank's ports with faults in them: decorators around any lane's ports.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "reprise/ports.hpp"
#include "sim/faults/fault_book.hpp"

namespace reprise::sim {

/// What a lane lends to faults, for one rank.
struct FaultPowers {
  /// Ends the rank's life as a crash does; does not return.
  std::function<void()> die;
  /// The rank does nothing for so long.
  std::function<void(std::uint64_t duration_ns)> sleep;
  /// The term of the lease on `path` ends, and another writer takes it. Empty where the store has
  /// no leases.
  std::function<void(const std::string& path)> take_lease = {};
};

class FaultyPorts {
 public:
  /// Both are borrowed and outlive it; so do the ports that it gives.
  FaultyPorts(const Ports& inner, FaultBook& book, FaultPowers powers);
  ~FaultyPorts();
  FaultyPorts(const FaultyPorts&) = delete;
  FaultyPorts& operator=(const FaultyPorts&) = delete;

  /// Those of the rank of `inner.fabric`. A crashed rank's are dead: their calls reach nothing.
  const Ports& ports() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::sim
